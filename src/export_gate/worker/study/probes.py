"""Plan the calls at the contract's edge and outside it that are worth trying."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch

from export_gate.wall.contract import Dim, ModelContract, TensorSpec
from export_gate.wall.inputs import leaves, tensors
from export_gate.worker.controls.check import axes_text
from export_gate.worker.controls.ordering import STRICT, impossible
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.controls.sizes import Sizes
from export_gate.worker.controls.specs import total_elements
from export_gate.worker.export.axes import is_static
from export_gate.worker.leaves.values import Call, Values

LIMIT = 24
"""Most probes of one model, not counting those at a minimum or maximum, which are always tried."""
GROWTH = 4
"""A probe may have this many times the reference input's elements."""
SMALL = 1 << 16
"""Inputs with at most this many elements in total are tried regardless of the reference's size."""
NAMES_SHOWN = 6

Kind = Literal["below-min", "above-max", "at-min", "at-max", "wrong-size", "wrong-dtype", "wrong-rank"]
KINDS: tuple[Kind, ...] = ("at-min", "at-max", "below-min", "above-max", "wrong-size", "wrong-dtype", "wrong-rank")
"""Kinds of probes, in the order in which the limit keeps them."""
Edit = Callable[[torch.Tensor], torch.Tensor]
Path = tuple[Any, ...]
"""Keys and indices that lead from the inputs to one tensor."""

OTHER_DTYPE = {
    "float64": "float32", "float32": "float64", "float16": "float32", "bfloat16": "float32",
    "int64": "int32", "int32": "int64", "int16": "int32", "int8": "int32", "uint8": "int32",
    "bool": "uint8", "complex64": "complex128", "complex128": "complex64",
}  # fmt: skip
"""The dtype that a caller most likely passes by mistake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedProbe:
    """One call to try."""

    kind: Kind
    axis: str
    declared: str
    tried: str
    elements: int
    """Of all tensor inputs together."""
    values: Callable[[], Values]
    """Creates fresh inputs."""
    bind: Callable[[Values], Call]
    """Turns them into a call."""
    left_out: str = ""
    """Why it is not tried; empty if it is."""
    sizes: Sizes | None = None
    """Every dim's size; None if something other than a size is varied."""
    case: str = ""
    """A control input of these very sizes, whose result is the answer; empty if the call must be made."""

    def call(self) -> Call:
        """Fresh arguments."""
        return self.bind(self.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """How a probe's arguments are created."""

    contract: ModelContract
    reference: Sizes
    """Sizes of the reference input; each probe varies one thing of it."""
    values_at: Callable[[Sizes], Values]
    """Makes the declared inputs at any sizes."""
    bind: Callable[[Values], Call]
    """Turns them into a call."""


def plan_probes(
    contract: ModelContract,
    reference: Mapping[str, int],
    values_at: Callable[[Sizes], Values],
    bind: Callable[[Values], Call],
) -> tuple[PlannedProbe, ...]:
    """All probes of a model, smallest input first, with a reason at those that are not tried (see `left_out_notes`)."""
    inputs = Inputs(contract=contract, reference=dict(reference), values_at=values_at, bind=bind)
    probes = [probe for dim in contract.dims for probe in _dim_probes(dim, inputs)]
    paths = [leaf for name, spec in contract.inputs.items() for leaf in leaves((name,), spec)]
    probes += [probe for path, spec in paths for probe in _tensor_probes(path, spec, inputs)]
    largest = max(GROWTH * total_elements(contract, inputs.reference), SMALL)
    return _within_limit([_within_size(probe, largest) for probe in probes])


def answered_by(probe: PlannedProbe, cases: Sequence[ControlCase]) -> PlannedProbe:
    """The probe with the generated control input that has its sizes, if there is one."""
    same = (case.name for case in cases if case.group == "generated" and case.sizes == probe.sizes)
    return replace(probe, case=next(same, ""))


def left_out_notes(probes: Sequence[PlannedProbe]) -> tuple[str, ...]:
    """One line per reason for which probes are not tried."""
    reasons = dict.fromkeys(probe.left_out for probe in probes if probe.left_out)
    return tuple(_note(reason, [p for p in probes if p.left_out == reason]) for reason in reasons)


def _note(reason: str, probes: Sequence[PlannedProbe]) -> str:
    names = ", ".join(f"{probe.axis}={probe.tried}" for probe in probes[:NAMES_SHOWN])
    more = f" and {len(probes) - NAMES_SHOWN} more" if len(probes) > NAMES_SHOWN else ""
    return f"guard probes not tried ({reason}): {names}{more}"


def _within_size(probe: PlannedProbe, largest: int) -> PlannedProbe:
    if _is_required(probe) or probe.elements <= largest or probe.left_out:
        return probe
    return replace(probe, left_out=f"more than {GROWTH} times the reference input's elements")


def _within_limit(probes: Sequence[PlannedProbe]) -> tuple[PlannedProbe, ...]:
    optional = [probe for probe in probes if not _is_required(probe) and not probe.left_out]
    optional.sort(key=lambda probe: (KINDS.index(probe.kind), probe.elements))
    # By identity, because a record with a dict has no hash.
    beyond = {id(probe) for probe in optional[LIMIT:]}
    reason = f"beyond the limit of {LIMIT}"
    kept = [replace(probe, left_out=reason) if id(probe) in beyond else probe for probe in probes]
    return tuple(sorted(kept, key=lambda probe: probe.elements))


def _is_required(probe: PlannedProbe) -> bool:
    """Whether the contract allows the call, so that the artifact must accept it too."""
    return probe.kind in ("at-min", "at-max")


def _dim_probes(dim: Dim, inputs: Inputs) -> Iterator[PlannedProbe]:
    step, reference = dim.multiple_of, inputs.reference[dim.name]
    tried: list[tuple[Kind, int]]
    if is_static(dim):
        declared, tried = str(reference), [("wrong-size", reference + 1)]
    else:
        low, high, declared = dim.sizes.start, dim.sizes[-1], dim.text
        below, above = _outside(dim, low, -step), _outside(dim, high, step)
        tried = [("below-min", below), ("at-min", low), ("at-max", high), ("above-max", above)]
        if step > 1:
            # Between two multiples, where no bound refuses it.
            tried.append(("wrong-size", reference + 1))
    for kind, size in tried:
        sizes = {**inputs.reference, dim.name: size}
        # An axis such as `seq-1` has no length at the smallest sizes.
        if size >= 0 and _are_possible(inputs.contract, sizes):
            yield PlannedProbe(
                kind=kind,
                axis=dim.name,
                declared=declared,
                tried=str(size),
                elements=total_elements(inputs.contract, sizes),
                values=_maker(inputs, sizes),
                bind=inputs.bind,
                left_out=_impossible(inputs.contract, sizes),
                sizes=sizes,
            )


def _outside(dim: Dim, bound: int, step: int) -> int:
    """The first size past a bound that no export serves: one with an export of its own is inside the contract."""
    size = bound + step
    while size in dim.separate:
        size += step
    return size


def _tensor_probes(path: Path, spec: TensorSpec, inputs: Inputs) -> Iterator[PlannedProbe]:
    name, elements = ".".join(map(str, path)), total_elements(inputs.contract, inputs.reference)
    rank, other = len(spec.shape), OTHER_DTYPE[spec.dtype]
    lengths = [size.at(inputs.reference) for size in spec.shape]
    tried: list[tuple[Kind, str, str, str, int, Edit]] = [
        (
            "wrong-size",
            f"{name}[{axis}]",
            str(size.offset),
            str(size.offset + 1),
            _slice(lengths, axis),
            _longer(axis, at_end=spec.order is not None and axis == rank - 1),
        )
        for axis, size in enumerate(spec.shape)
        if not size.factors and not (spec.order == STRICT and axis == rank - 1)  # one value more may not be there
    ]
    tried.append(("wrong-dtype", name, spec.dtype, other, 0, lambda tensor: tensor.to(getattr(torch, other))))
    tried.append(("wrong-rank", name, axes_text(rank), axes_text(rank + 1), 0, lambda tensor: tensor.unsqueeze(0)))
    for kind, axis_name, declared, instead, added, edit in tried:
        yield PlannedProbe(
            kind=kind,
            axis=axis_name,
            declared=declared,
            tried=instead,
            elements=elements + added,
            values=_maker(inputs, inputs.reference, path, edit),
            bind=inputs.bind,
        )


def _slice(lengths: Sequence[int], axis: int) -> int:
    """Elements of one slice across an axis."""
    return math.prod(length for at, length in enumerate(lengths) if at != axis)


def _longer(axis: int, *, at_end: bool) -> Edit:
    """Repeats a slice at the end, so that the values stay in range: the first, or the last to keep an order."""

    def edit(tensor: torch.Tensor) -> torch.Tensor:
        length = tensor.shape[axis]
        shape = [1 if at == axis else size for at, size in enumerate(tensor.shape)]
        repeated = tensor.narrow(axis, length - 1 if at_end else 0, 1) if length else tensor.new_zeros(shape)
        return torch.cat([tensor, repeated], dim=axis)

    return edit


def _maker(inputs: Inputs, sizes: Sizes, path: Path = (), edit: Edit | None = None) -> Callable[[], Values]:
    def values() -> Values:
        made = inputs.values_at(dict(sizes))
        edited: Values = made if edit is None else _edited(made, path, edit)
        return edited

    return values


def _edited(value: Any, path: Path, edit: Edit) -> Any:
    if not path:
        return edit(value)
    key, rest = path[0], path[1:]
    if isinstance(value, dict):
        return {**value, key: _edited(value[key], rest, edit)}
    items = list(value)
    items[key] = _edited(items[key], rest, edit)
    return type(value)(items)


def _impossible(contract: ModelContract, sizes: Sizes) -> str:
    """Why an input has no values at these sizes; empty if all have some."""
    reasons = ((path, impossible(spec, sizes)) for path, spec in tensors(contract.inputs))
    return next((f"input {path}: {reason}" for path, reason in reasons if reason), "")


def _are_possible(contract: ModelContract, sizes: Sizes) -> bool:
    return all(size.at(sizes) >= 0 for _, spec in tensors(contract.inputs) for size in spec.shape)
