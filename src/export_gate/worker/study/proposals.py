"""Relations that a contract could declare, read from inputs that eager refuses and from inputs that it takes."""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from export_gate.wall.contract import Bound, Dim, ModelContract, Size, TensorSpec
from export_gate.wall.inputs import with_tensors
from export_gate.wall.words import number_text
from export_gate.worker.controls.sizes import in_steps
from export_gate.worker.controls.specs import is_integer, tensor_leaves

OFFSETS = (-1, 0, -2, 1)
"""Of a largest value from a sum of dims: the last index of an axis first."""
STEPS = (2, 3, 4, 5, 6, 8, 7, 12, 16, 32, 64, 128)
"""`multiple-of` in the order of how usual they are."""
SIZES_TRIED = 4
MOST_BETWEEN = 8
MATRIX = 2
LISTED = 16
"""Values that are written one by one."""
ORDERS: dict[str, Callable[[Any, Any], Any]] = {
    "increasing": np.less_equal,
    "decreasing": np.greater_equal,
    "strictly-increasing": np.less,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """One control input."""

    sizes: dict[str, int]
    values: Mapping[str, npt.NDArray[Any]]
    """By input path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A relation that all refused inputs break and all accepted ones keep."""

    words: str
    """When eager refuses: `` `pos` >= `seq` ``."""
    declare: str
    """What the config may say, in backticks; a sentence where that takes more than its key."""
    key: str
    """Its key below the model's."""
    contract: ModelContract | None = None
    """The contract with it; None if the contract cannot say it."""
    sizes: tuple[dict[str, int], ...] = ()
    """Sizes to try instead of the refused ones."""


def proposals(
    contract: ModelContract, weights: Mapping[str, tuple[int, ...]], refused: Sequence[Facts], accepted: Sequence[Facts]
) -> Iterator[Proposal]:
    """Every relation that tells the refused inputs from the accepted ones, the most likely first.

    Args:
        contract: what is declared.
        weights: Name -> shape.
        refused: inputs at which eager raises in the same place.
        accepted: inputs that it takes.
    """
    seen = _Seen(contract, refused, accepted)
    free = [(path, spec) for path, spec in tensor_leaves(contract) if not (spec.make or spec.values or spec.positions)]
    integers = [(path, spec) for path, spec in free if is_integer(spec)]
    for path, spec in integers:
        yield from _columns(seen, path, spec, weights)
        yield from _upper_bounds(seen, path, spec, weights)
        yield from _lower_bounds(seen, path, spec)
    yield from _orders(seen, [(path, spec) for path, spec in free if spec.shape and spec.order is None])
    yield from _dim_limits(seen, weights)
    yield from _dim_pairs(seen)
    yield from _between_inputs(seen, [path for path, _ in integers])


@dataclass(frozen=True, slots=True)
class _Seen:
    contract: ModelContract
    refused: Sequence[Facts]
    accepted: Sequence[Facts]

    def tells(self, is_kept: Callable[[Facts], bool]) -> bool:
        return all(map(is_kept, self.accepted)) and not any(map(is_kept, self.refused))

    def of(self, facts: Sequence[Facts], path: str, what: Callable[[Any], Any]) -> list[int]:
        arrays = (each.values[path] for each in facts if path in each.values)
        return [int(what(array)) for array in arrays if array.size]


def _upper_bounds(
    seen: _Seen, path: str, spec: TensorSpec, weights: Mapping[str, tuple[int, ...]]
) -> Iterator[Proposal]:
    for total in _sums(seen.contract):
        for offset in OFFSETS:
            limit = Size(factors=total.factors, offset=offset)
            if seen.tells(partial(_is_within, path, limit)):
                words = f"`{path}` >= `{total}`" if offset == -1 else f"`{path}` > `{limit}`"
                yield _ranged(seen, path, (_low(seen, path, spec), limit), words)
    low, high = seen.of(seen.accepted, path, np.max), seen.of(seen.refused, path, np.max)
    # A table that every accepted index fits into, and the largest index of no refused input.
    lengths = sorted((sizes[0], name) for name, sizes in weights.items() if low and high and max(low) < sizes[0])
    for length, name in lengths:
        if length <= min(high):
            words = f"`{path}` >= {length}, the length of `{name}`"
            yield _ranged(seen, path, (_low(seen, path, spec), length - 1), words)
            return


def _columns(seen: _Seen, path: str, spec: TensorSpec, weights: Mapping[str, tuple[int, ...]]) -> Iterator[Proposal]:
    """Columns of which each is an index into a table of its own, as categories of tabular data are."""
    tables = [(name, sizes[0]) for name, sizes in weights.items() if len(sizes) == MATRIX]
    count = spec.shape[-1].offset if spec.shape and not spec.shape[-1].factors else 0
    if count < 2 or count != len(tables) or len({length for _, length in tables}) == 1:  # noqa: PLR2004 - one is no row
        return
    limits = np.array([length - 1 for _, length in tables])
    if not seen.tells(lambda facts: bool(np.all(facts.values[path] <= limits))):
        return
    contract = _with(seen.contract, path, range=None, positions=tuple(tuple(range(length)) for _, length in tables))
    lists = ", ".join(str(list(range(length))) if length <= LISTED else f"[0 to {length - 1}]" for _, length in tables)
    ends = ", ".join(f"{length - 1} (`{name}`)" for name, length in tables)
    words = f"a column of `{path}` is beyond its table, which end at {ends}"
    yield Proposal(
        words=words, declare=f"`values: [{lists}]` instead of `range`", key=f"inputs.{path}", contract=contract
    )


def _lower_bounds(seen: _Seen, path: str, spec: TensorSpec) -> Iterator[Proposal]:
    low, kept = seen.of(seen.refused, path, np.min), seen.of(seen.accepted, path, np.min)
    if low and kept and max(low) < min(kept):
        # 0 is likelier than the least number that separates them.
        least = 0 if max(low) < 0 <= min(kept) else max(low) + 1
        high: Bound = spec.range[1] if spec.range else max(seen.of(seen.accepted, path, np.max))
        yield _ranged(seen, path, (least, high), f"`{path}` < {least}")


def _orders(seen: _Seen, leaves: Sequence[tuple[str, TensorSpec]]) -> Iterator[Proposal]:
    for path, spec in leaves:
        for order, is_before in ORDERS.items():
            if spec.dtype != "bool" and seen.tells(partial(_is_ordered, path, is_before)):
                contract = _with(seen.contract, path, order=order)
                words = f"`{path}` is not {order.replace('-', ' ')} along its last axis"
                yield Proposal(words=words, declare=f"`order: {order}`", key=f"inputs.{path}", contract=contract)


def _dim_limits(seen: _Seen, weights: Mapping[str, tuple[int, ...]]) -> Iterator[Proposal]:
    for dim in seen.contract.dims:
        refused, kept = ({facts.sizes[dim.name] for facts in each} for each in (seen.refused, seen.accepted))
        if max(kept) < min(refused):
            for size, name in _lengths(weights, max(kept), min(refused)):
                yield _limited(seen, dim, f"`{dim.name}` > {size}, a length of `{name}`", {"max": size})
            # The widest limit first: the first within which eager takes everything is the one to declare.
            for size in (*_between(dim, max(kept), min(refused))[::-1], max(kept)):
                yield _limited(seen, dim, f"`{dim.name}` > {size}", {"max": size})
        if min(kept) > max(refused):
            for size in (*_between(dim, max(refused), min(kept)), min(kept)):
                yield _limited(seen, dim, f"`{dim.name}` < {size}", {"min": size})
        # One accepted size alone is a multiple of whatever divides it.
        for step in STEPS if len(kept) > 1 else ():
            if not any(size % step for size in kept) and all(size % step for size in refused):
                words = f"`{dim.name}` is not a multiple of {step}"
                yield _limited(seen, dim, words, in_steps(dim, step) or {"multiple-of": step})


def _lengths(weights: Mapping[str, tuple[int, ...]], low: int, high: int) -> list[tuple[int, str]]:
    """Lengths of tables that end between two sizes, the longest first."""
    found = {length: name for name, sizes in weights.items() for length in sizes if low <= length < high}
    return sorted(found.items(), reverse=True)


def _between(dim: Dim, low: int, high: int) -> list[int]:
    """Sizes that were not tried; of many none, so that few trials are made."""
    sizes = dim.sizes[bisect_right(dim.sizes, low) : bisect_left(dim.sizes, high)]
    return list(sizes) if len(sizes) <= MOST_BETWEEN else []


def _dim_pairs(seen: _Seen) -> Iterator[Proposal]:
    for one, other in itertools.permutations([dim.name for dim in seen.contract.dims], 2):
        if one < other and seen.tells(partial(_is_equal, one, other)):
            shapes = " and ".join(_with_dim(seen.contract, one, other))
            declare = f"write `{one}` for `{other}` ({shapes}), and remove `{other}` from `dims`"
            yield Proposal(words=f"`{one}` differs from `{other}`", declare=declare, key=f"dims.{other}")
        if seen.tells(partial(_is_no_larger, one, other)):
            declare = f"give `{one}` a `max` that is no greater than the `min` of `{other}`"
            yield Proposal(words=f"`{one}` > `{other}`", declare=declare, key=f"dims.{one}")


def _with_dim(contract: ModelContract, one: str, other: str) -> Iterator[str]:
    """Each shape that has the other dim, with this one in its place: `` `inputs.mask.shape: [B, S]` ``."""
    for path, spec in tensor_leaves(contract):
        if any(other in size.factors for size in spec.shape):
            sizes = [re.sub(rf"\b{re.escape(other)}\b", one, str(size)) for size in spec.shape]
            yield f"`inputs.{path}.shape: [{', '.join(sizes)}]`"


def _between_inputs(seen: _Seen, paths: Sequence[str]) -> Iterator[Proposal]:
    for one, other in itertools.permutations(paths, 2):
        if seen.tells(partial(_is_below, one, other)):
            words = f"`{one}` > `{other}` somewhere"
            yield Proposal(words=words, declare="draw both together with `controls.make`", key="controls.make")


def _sums(contract: ModelContract) -> Iterator[Size]:
    names = [dim.name for dim in contract.dims]
    yield from (Size(factors={name: 1}) for name in names)
    yield from (Size(factors={one: 1, other: 1}) for one, other in itertools.combinations(names, 2))
    yield from (Size(factors={name: 2}) for name in names)


def _is_within(path: str, limit: Size, facts: Facts) -> bool:
    return path not in facts.values or bool(np.all(facts.values[path] <= limit.at(facts.sizes)))


def _is_ordered(path: str, is_before: Callable[[Any, Any], Any], facts: Facts) -> bool:
    values = facts.values.get(path)
    return values is None or bool(np.all(is_before(values[..., :-1], values[..., 1:])))


def _is_equal(one: str, other: str, facts: Facts) -> bool:
    return facts.sizes[one] == facts.sizes[other]


def _is_no_larger(one: str, other: str, facts: Facts) -> bool:
    return facts.sizes[one] <= facts.sizes[other]


def _is_below(one: str, other: str, facts: Facts) -> bool:
    first, second = facts.values.get(one), facts.values.get(other)
    if first is None or second is None or first.shape != second.shape:
        return False
    return bool(np.all(first <= second))


def _low(seen: _Seen, path: str, spec: TensorSpec) -> Bound:
    return spec.range[0] if spec.range else min(seen.of(seen.accepted, path, np.min), default=0)


def _ranged(seen: _Seen, path: str, bounds: tuple[Bound, Bound], words: str) -> Proposal:
    """A proposal of these bounds, which are written as in a config."""
    low, high = (str(bound) if isinstance(bound, Size) else number_text(bound) for bound in bounds)
    contract = _with(seen.contract, path, range=bounds)
    return Proposal(words=words, declare=f"`range: [{low}, {high}]`", key=f"inputs.{path}", contract=contract)


def _limited(seen: _Seen, dim: Dim, words: str, change: Mapping[str, Any]) -> Proposal:
    """A proposal of other limits of a dim, which are tried at more of the sizes that they leave."""
    written = [f"{key}: {value}" for key, value in change.items()]
    limits: dict[str, Any] = {key.replace("-", "_"): value for key, value in change.items()}
    limited = replace(dim, **limits)
    contract = replace(seen.contract, dims=tuple(limited if each is dim else each for each in seen.contract.dims))
    left = limited.sizes
    some = [left[round(place * (len(left) - 1) / (SIZES_TRIED - 1))] for place in range(SIZES_TRIED)] if left else []
    middle = seen.accepted[0].sizes
    return Proposal(
        words=words,
        declare=f"`{{{', '.join(written)}}}`" if len(written) > 1 else f"`{written[0]}`",
        key=f"dims.{dim.name}",
        contract=contract,
        sizes=tuple({**middle, dim.name: size} for size in dict.fromkeys(some)),
    )


def _with(contract: ModelContract, path: str, **changes: Any) -> ModelContract:
    def changed(here: str, spec: TensorSpec) -> TensorSpec:
        return replace(spec, **changes) if here == path else spec

    return replace(contract, inputs=with_tensors(contract.inputs, changed))
