"""Choose the sizes that the dims take: those of the reference input, and those of the control set."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from export_gate.wall.contract import Dim, ModelContract
from export_gate.wall.errors import UserError
from export_gate.worker.controls.specs import tensor_leaves

Sizes = dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class SizePlan:
    """Sizes in the order of how much they catch; all different across the five fields."""

    boundary: tuple[Sizes, ...]
    """The middle, all-min, all-max, then each dim at its ends with the others in the middle."""
    inner: tuple[Sizes, ...]
    """One step inside each end, all dims equal, one dim at 1."""
    pairs: tuple[Sizes, ...]
    """Two dims at their ends with the others in the middle."""
    separate: tuple[Sizes, ...]
    """One dim at a size that has an export of its own."""
    beside: tuple[Sizes, ...]
    """The same with the other dims at their ends and one step inside, each alone and all together."""

    @property
    def middle(self) -> Sizes:
        """All dims in the middle."""
        return self.boundary[0]

    @property
    def smallest(self) -> Sizes:
        """All dims at their minimum."""
        return {dim: min(sizes[dim] for sizes in self.boundary) for dim in self.middle}

    @property
    def largest(self) -> Sizes:
        """All dims at their maximum."""
        return {dim: max(sizes[dim] for sizes in self.boundary) for dim in self.middle}


def reference_sizes(contract: ModelContract) -> Sizes:
    """Sizes of the input that torch.export sees: declared examples, else middle sizes that hide no specialization.

    Axes of 0 and 1, and 0 and 1 steps of `multiple-of`, are constants to torch.export, the maximum invites
    `min(size, max)` to vanish, and two dims of one size (or a dim as long as a constant axis) look alike in a trace.
    """
    sizes = {dim.name: dim.example for dim in contract.dims if dim.example is not None}
    constants = {size.offset for _, spec in tensor_leaves(contract) for size in spec.shape if not size.factors}
    for dim in contract.dims:
        if dim.name not in sizes:
            sizes[dim.name] = _reference_size(contract, dim, set(sizes.values()), constants)
    return {dim.name: sizes[dim.name] for dim in contract.dims}


def plan_sizes(contract: ModelContract) -> SizePlan:
    """The control set's sizes for each dim and each combination worth a case."""
    reference = reference_sizes(contract)
    levels = {dim.name: _levels(contract, dim, reference[dim.name]) for dim in contract.dims}
    middle = {name: _nearest(tried, reference[name]) for name, tried in levels.items()}
    ends = {name: (min(tried), max(tried)) for name, tried in levels.items()}
    seen: list[Sizes] = []
    # In this order: `seen` leaves each size to the first field that has it.
    return SizePlan(
        boundary=_unseen(_boundary(middle, ends), seen),
        inner=_unseen(_inner(contract, middle, levels), seen),
        pairs=_unseen(_pairs(middle, ends), seen),
        separate=_unseen(({**middle, dim.name: size} for dim in contract.dims for size in dim.separate), seen),
        beside=_unseen(_beside(contract, middle, levels), seen),
    )


def _reference_size(contract: ModelContract, dim: Dim, taken: set[int], constants: set[int]) -> int:
    allowed = dim.sizes
    if not allowed:
        raise UserError(
            f"models.{contract.name}.dims.{dim.name}: expected a multiple of {dim.multiple_of} in"
            f" {dim.min}..{dim.max}, there is none",
            "Widen the range or change `multiple-of`.",
        )
    middle = (len(allowed) - 1) // 2
    # A window: ranges may have millions of sizes.
    near = allowed[max(0, middle - 32) : middle + 33]
    # Most important first: what surely specializes, then what looks like another size in a trace, then the distance.
    return min(
        near,
        key=lambda size: (
            size // dim.multiple_of in (0, 1),
            _has_constant_axis(contract, dim, size),
            size in taken,
            size == dim.max,
            size in constants,
            abs(size - allowed[middle]),
        ),
    )


def _has_constant_axis(contract: ModelContract, dim: Dim, size: int) -> bool:
    """Whether an axis made of this dim alone would have length 0 or 1."""
    axes = [axis for _, spec in tensor_leaves(contract) for axis in spec.shape if axis.dim == dim.name]
    return any(axis.at({dim.name: size}) in (0, 1) for axis in axes)


def _levels(contract: ModelContract, dim: Dim, reference: int) -> tuple[int, ...]:
    """Sizes to try for one dim, ascending."""
    if dim.mode == "static":
        return (reference,)
    allowed = dim.sizes
    chosen = contract.controls.sizes.get(dim.name)
    if chosen is None:
        # Slices, because a range may have one size only.
        return tuple(sorted({allowed[0], allowed[:2][-1], reference, allowed[-2:][0], allowed[-1]}))
    for size in chosen:
        if size not in allowed and size not in dim.separate:
            raise UserError(
                f"models.{contract.name}.controls.sizes.{dim.name}: expected sizes in {dim.text}, got {size}",
                "Widen the dim's range or drop the size.",
            )
    inside = {size for size in chosen if size in allowed}
    return tuple(sorted(inside)) or (reference,)


def _nearest(tried: tuple[int, ...], size: int) -> int:
    return min(tried, key=lambda other: abs(other - size))


def _boundary(middle: Sizes, ends: dict[str, tuple[int, int]]) -> Iterator[Sizes]:
    yield middle
    yield {name: low for name, (low, _) in ends.items()}
    yield {name: high for name, (_, high) in ends.items()}
    for name, end in itertools.product(ends, (0, 1)):
        yield {**middle, name: ends[name][end]}


def _inner(contract: ModelContract, middle: Sizes, levels: dict[str, tuple[int, ...]]) -> Iterator[Sizes]:
    for name, tried in levels.items():
        for size in tried:
            yield {**middle, name: size}
    yield from _equal(contract, levels)
    for dim in contract.dims:
        if dim.mode != "static" and dim.name not in contract.controls.sizes and 1 in dim.sizes:
            yield {**middle, dim.name: 1}


def _equal(contract: ModelContract, levels: dict[str, tuple[int, ...]]) -> Iterator[Sizes]:
    """All dims at one size near the middle of what they share; nothing if they share no size."""
    chosen = contract.controls.sizes
    ranges = [levels[dim.name] if dim.mode == "static" or dim.name in chosen else dim.sizes for dim in contract.dims]
    if len(ranges) > 1:
        shared = _shared(ranges)
        # Not 1, if possible: broadcasting makes that a case of its own.
        plain = shared[bisect_right(shared, 1) :] or shared
        if plain:
            yield dict.fromkeys(levels, plain[len(plain) // 2])


def _shared(choices: Sequence[Sequence[int]]) -> Sequence[int]:
    """The sizes that are in all of them, ascending; of ranges alone as a range, since they may have millions."""
    listed = [sizes for sizes in choices if not isinstance(sizes, range)]
    if listed:
        return sorted(size for size in set(listed[0]) if all(size in sizes for sizes in choices))
    ranges = [sizes for sizes in choices if isinstance(sizes, range)]
    # Each of them begins at a multiple of its step.
    step = math.lcm(*(sizes.step for sizes in ranges))
    first = -(-max(sizes[0] for sizes in ranges) // step) * step
    return range(first, min(sizes[-1] for sizes in ranges) + 1, step)


def _pairs(middle: Sizes, ends: dict[str, tuple[int, int]]) -> Iterator[Sizes]:
    for one, other in itertools.combinations(ends, 2):
        for first, second in ((0, 1), (1, 0), (0, 0), (1, 1)):
            yield {**middle, one: ends[one][first], other: ends[other][second]}


def _beside(contract: ModelContract, middle: Sizes, levels: dict[str, tuple[int, ...]]) -> Iterator[Sizes]:
    """Inside each separate export, what `boundary` and `inner` are in the main one."""
    for dim in contract.dims:
        others = {name: tried for name, tried in levels.items() if name != dim.name}
        for size in dim.separate:
            yield {**middle, **{name: tried[0] for name, tried in others.items()}, dim.name: size}
            yield {**middle, **{name: tried[-1] for name, tried in others.items()}, dim.name: size}
            for name, tried in others.items():
                yield from ({**middle, dim.name: size, name: other} for other in tried)


def _unseen(candidates: Iterable[Sizes], seen: list[Sizes]) -> tuple[Sizes, ...]:
    new: list[Sizes] = []
    for sizes in candidates:
        if sizes not in seen:
            seen.append(sizes)
            new.append(sizes)
    return tuple(new)


def in_steps(dim: Dim, step: int) -> dict[str, int | str]:
    """The dim's keys if it has only multiples of a step, which its limits must be too; empty if one or none is left."""
    low, high = -(-dim.min // step) * step, dim.max // step * step
    if high <= low:
        return {}
    ends: dict[str, int | str] = {"min": low} if low != dim.min else {}
    ends |= {"max": high} if high != dim.max else {}
    return {"multiple-of": step, **ends}
