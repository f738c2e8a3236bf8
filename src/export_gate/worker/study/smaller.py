"""Smaller and simpler versions of a control input: fewer elements, and values such as 0 and 1.

Each is within the contract: its sizes are allowed, and its values in range, in order and of the declared kind.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

import torch

from export_gate.wall.contract import ModelContract, TensorSpec
from export_gate.worker.controls.generate import redrawn
from export_gate.worker.controls.intervals import admits, value_bounds
from export_gate.worker.controls.layout import tensors_of
from export_gate.worker.controls.made import MadeTensor, has_makers
from export_gate.worker.controls.ordering import order_broken
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.controls.sizes import Sizes
from export_gate.worker.controls.specs import build_values, is_floating, shape_at, tensor_leaves
from export_gate.worker.leaves.values import Values

Keeps = Callable[["Small"], bool]
"""Whether an input still fails in the same way; then it replaces the one before."""
FEW = 16
"""Elements that are simplified one by one."""
DIGITS = (0, 1, 2)
"""Decimals that are tried."""
ODD = 16
"""The cost of a value that is neither simple nor short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Small:
    """One version: its sizes and its tensors by path."""

    contract: ModelContract
    sizes: Sizes
    tensors: Mapping[str, torch.Tensor]
    is_bounded: bool = True
    """Whether floats have to be in their range, which a project's own inputs may leave on purpose."""

    @classmethod
    def of(cls, contract: ModelContract, case: ControlCase) -> Small:
        """The control input itself."""
        tensors = {
            path: tensor.detach().clone(memory_format=torch.contiguous_format)
            for path, tensor in tensors_of(case.make()).items()
        }
        own = cls(contract=contract, sizes=dict(case.sizes), tensors=tensors)
        return own if own.is_allowed() else replace(own, is_bounded=False)

    @property
    def elements(self) -> int:
        """In all tensors."""
        return sum(tensor.numel() for tensor in self.tensors.values())

    def values(self) -> Values:
        """Fresh values for a call."""
        return build_values(self.contract, lambda path, _: self.tensors[path].clone())

    def with_tensor(self, path: str, tensor: torch.Tensor) -> Small:
        """The same with one tensor replaced."""
        return replace(self, tensors={**self.tensors, path: tensor})

    def is_allowed(self) -> bool:
        """Whether the contract admits it."""
        for path, spec in tensor_leaves(self.contract):
            placed, tensor = spec.at(self.sizes), self.tensors[path]
            if is_floating(spec) and not self.is_bounded:
                placed = replace(placed, range=None)
            if tuple(tensor.shape) != shape_at(spec, self.sizes):
                return False
            # What the project draws was checked as it was drawn.
            if not isinstance(spec, MadeTensor) and (admits(placed, tensor) or order_broken(placed, tensor)):
                return False
        return True


def shrink(start: Small, case: ControlCase, fixed: Sequence[str], keeps: Keeps) -> Small:
    """Shrink sizes, then simplify values, until nothing changes; `keeps` ends it by raising.

    Args:
        start: the control input.
        case: the same, to draw its family anew at other sizes.
        fixed: dims that keep their size.
        keeps: remembers the last version that it accepts, since it may raise before the end.
    """
    current = start
    # Values that became simpler may allow smaller sizes, and the other way round.
    while True:
        before = current
        current = _smaller(current, case, fixed, keeps)
        if not has_makers(current.contract):
            current = _simpler(current, keeps)
        if current is before:
            return current


def _smaller(current: Small, case: ControlCase, fixed: Sequence[str], keeps: Keeps) -> Small:
    for dim in current.contract.dims:
        if dim.name in fixed or dim.mode == "static":
            continue
        below = dim.sizes[: bisect_left(dim.sizes, current.sizes[dim.name])]
        while below:  # the smallest first, then halfway up from the sizes that no longer fail
            at = below[0]
            tried = () if at in dim.separate else _resized(current, case, {**current.sizes, dim.name: at})
            found = next((v for v in tried if keeps(v)), None)
            if found is not None:
                current = found
                break
            # At least one less, so that the search ends.
            below = below[max(len(below) // 2, 1) :]
    return current


def _resized(current: Small, case: ControlCase, sizes: Sizes) -> Iterator[Small]:
    """The first part of each tensor, the last part, and for generated inputs another draw at these sizes."""
    if not has_makers(current.contract):
        for is_last in (False, True):
            tensors = {
                path: _cut(current.tensors[path], shape_at(spec, sizes), is_last=is_last)
                for path, spec in tensor_leaves(current.contract)
            }
            if all(tensor is not None for tensor in tensors.values()):
                yield replace(current, sizes=sizes, tensors={p: t for p, t in tensors.items() if t is not None})
    if case.group == "generated":
        yield Small.of(current.contract, redrawn(current.contract, case, sizes))


def _cut(tensor: torch.Tensor, shape: tuple[int, ...], *, is_last: bool) -> torch.Tensor | None:
    if any(new > old for new, old in zip(shape, tensor.shape, strict=True)):
        return None
    for axis, length in enumerate(shape):
        tensor = tensor.narrow(axis, tensor.shape[axis] - length if is_last else 0, length)
    return tensor.clone(memory_format=torch.contiguous_format)


def _simpler(current: Small, keeps: Keeps) -> Small:
    for path, spec in tensor_leaves(current.contract):
        if spec.is_mask or spec.positions or current.tensors[path].numel() == 0 or current.tensors[path].is_complex():
            continue  # a mask says what the other values mean
        current = _whole(current, path, spec, keeps)
        current = _parts(current, path, spec, keeps)
        current = _few(current, path, spec, keeps)
    return current


def _whole(current: Small, path: str, spec: TensorSpec, keeps: Keeps) -> Small:
    """All elements alike, or rounded."""
    tensor = current.tensors[path]
    candidates = [torch.full_like(tensor, value) for value in simple_values(spec.at(current.sizes))]
    if tensor.is_floating_point():
        candidates += [_rounded(tensor, digits) for digits in DIGITS]
    return next((v for v in _versions(current, path, candidates) if keeps(v)), current)


def _versions(current: Small, path: str, candidates: Sequence[torch.Tensor]) -> Iterator[Small]:
    """The candidates that are simpler than what is there, the simplest first; so every search ends."""
    spec = next(spec for name, spec in tensor_leaves(current.contract) if name == path).at(current.sizes)
    cost = _cost(current.tensors[path], spec)
    priced = [(_cost(tensor, spec), tensor) for tensor in candidates]
    # By the cost alone, because tensors have no order.
    ordered = sorted((each for each in priced if each[0] < cost), key=itemgetter(0))
    yield from (current.with_tensor(path, tensor) for _, tensor in ordered)


def _cost(tensor: torch.Tensor, spec: TensorSpec) -> float:
    """How far the values are from simple ones: 0 for each of the simplest, then 1 and so on; digits cost more."""
    wide = tensor.double()
    ranks = torch.full(wide.shape, float(ODD))
    # Reversed, so that the lowest cost is written last.
    for digits in reversed(DIGITS):
        ranks[tensor == _rounded(tensor, digits)] = ODD - len(DIGITS) + digits
    for rank, value in reversed(list(enumerate(simple_values(spec)))):
        ranks[wide == value] = rank
    return float(ranks.sum())


def _parts(current: Small, path: str, spec: TensorSpec, keeps: Keeps) -> Small:
    """Blocks of elements set to a simple value: halves, quarters and so on, down to single elements."""
    for base in simple_values(spec.at(current.sizes))[:2]:
        # Large blocks first: mostly a few elements matter, and a few tries clear all others.
        length = -(-current.tensors[path].numel() // 2)
        while length:
            current = _blocks(current, path, base, length, keeps)
            length = 0 if length == 1 else -(-length // 2)
    return current


def _blocks(current: Small, path: str, base: float, length: int, keeps: Keeps) -> Small:
    for start in range(0, current.tensors[path].numel(), length):
        flat = current.tensors[path].reshape(-1).clone()
        flat[start : start + length] = base
        candidate = flat.reshape(current.tensors[path].shape)
        current = next((v for v in _versions(current, path, [candidate]) if keeps(v)), current)
    return current


def _few(current: Small, path: str, spec: TensorSpec, keeps: Keeps) -> Small:
    """Single elements, if few are left that are not simple."""
    simple = simple_values(spec.at(current.sizes))
    flat = current.tensors[path].reshape(-1)
    odd = [at for at, value in enumerate(flat.tolist()) if value not in simple]
    for at in odd if len(odd) <= FEW else ():
        value = current.tensors[path].reshape(-1)[at]
        options = [torch.tensor(other, dtype=value.dtype) for other in simple]
        options += [_rounded(value, digits) for digits in DIGITS] if value.is_floating_point() else []
        candidates = [_with_element(current.tensors[path], at, option) for option in options]
        current = next((v for v in _versions(current, path, candidates) if keeps(v)), current)
    return current


def _with_element(tensor: torch.Tensor, at: int, value: torch.Tensor) -> torch.Tensor:
    changed = tensor.reshape(-1).clone()
    changed[at] = value
    return changed.reshape(tensor.shape)


def simple_values(spec: TensorSpec) -> tuple[float, ...]:
    """The simplest values that the contract admits, the simplest first."""
    if spec.values:
        return tuple(sorted(set(spec.values), key=lambda value: (abs(value), value))[:2])
    if spec.dtype == "bool":
        return (0.0, 1.0)
    low, high = value_bounds(spec)
    inside = [value for value in (0.0, 1.0, -1.0) if low <= value <= high]
    # Two at least, so that a range without 0 and 1 has its ends.
    return tuple(dict.fromkeys((*inside, low, high)))[: max(len(inside), 2)]


def _rounded(tensor: torch.Tensor, digits: int) -> torch.Tensor:
    wide = tensor.double()
    return torch.where(wide.isfinite(), torch.round(wide, decimals=digits), wide).to(tensor.dtype)
