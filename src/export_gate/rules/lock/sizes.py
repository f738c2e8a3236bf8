"""Sizes that a dim or an axis may have: which sizes were accepted before and are refused now."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from export_gate.rules.lock.record import LockedDim
from export_gate.wall.contract import Size
from export_gate.wall.sizes import parse_size

TRIED = 2048
"""Sizes tried from each end of a range; a missing size shows at an end or within one period of the steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """`low`, `low + step`, up to `high`, and `others`."""

    low: int
    high: int
    step: int = 1
    others: tuple[int, ...] = ()

    def __contains__(self, size: int) -> bool:
        return size in self.others or (self.low <= size <= self.high and (size - self.low) % self.step == 0)

    def __str__(self) -> str:
        if self.low == self.high:
            plain = str(self.low)
        else:
            plain = f"{self.low}..{self.high}" + (f" in steps of {self.step}" if self.step > 1 else "")
        apart = [str(size) for size in self.others if not self.low <= size <= self.high]
        return f"{plain} and {', '.join(apart)}" if apart else plain

    def ends(self) -> Iterator[int]:
        """Sizes from both ends and the others."""
        last = self.low + (self.high - self.low) // self.step * self.step
        # A range may have billions of sizes.
        yield from islice(range(self.low, self.high + 1, self.step), TRIED)
        yield from islice(range(last, self.low - 1, -self.step), TRIED)
        yield from self.others

    def first_missing(self, other: Sizes) -> int | None:
        """The first of these sizes that `other` lacks."""
        return next((size for size in self.ends() if size not in other), None)


def dim_sizes(dim: LockedDim) -> Sizes:
    """The sizes of a dim."""
    return Sizes(low=dim.min, high=dim.max, step=dim.multiple_of, others=dim.separate)


def axis_size(text: str) -> Size | None:
    """The expression of an axis; None if the text is not one (`?`, or a file edited by hand)."""
    try:
        return parse_size(text)
    except ValueError:
        return None


def axis_sizes(size: Size, dims: dict[str, LockedDim]) -> Sizes | None:
    """The lengths that an axis may have; None if one of its dims is unknown."""
    if not size.factors.keys() <= dims.keys():
        return None
    summed = Sizes(low=size.offset, high=size.offset)
    for name, factor in size.factors.items():
        summed = _sum(summed, dim_sizes(dims[name]), factor)
    return summed


def _sum(one: Sizes, dim: Sizes, factor: int) -> Sizes:
    """All sums of a size of one and `factor` times a size of the dim, in the widest step that has them all."""
    # One size alone has no step; of two steps, every sum is a multiple of their greatest common divisor.
    steps = [each for sizes, each in ((one, one.step), (dim, factor * dim.step)) if sizes.low < sizes.high]
    return Sizes(
        low=one.low + factor * dim.low,
        high=one.high + factor * dim.high,
        step=math.gcd(*steps) or 1,
        others=tuple(one.low + factor * other for other in dim.others),
    )
