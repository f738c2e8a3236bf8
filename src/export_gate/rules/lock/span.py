"""Ranges of values with numbers or expressions in dims as bounds: find accepted values that are now refused."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from export_gate.rules.lock.record import LockedBound, LockedDim
from export_gate.wall.contract import Bound, Size
from export_gate.wall.sizes import difference, lowest, parse_expression
from export_gate.wall.words import number_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """An inclusive range."""

    low: Bound | str
    """A text if the file has one that is not an expression."""
    high: Bound | str

    @classmethod
    def of(cls, bounds: tuple[LockedBound, LockedBound], dims: Mapping[str, str]) -> Span:
        """The range as the lock has it, with the dims' new names."""
        low, high = (_bound(bound, dims) for bound in bounds)
        return cls(low=low, high=high)

    def __str__(self) -> str:
        return f"{_text(self.low)}..{_text(self.high)}"

    def first_outside(self, other: Span, dims: Mapping[str, LockedDim]) -> str:
        """A value of this range that `other` lacks at some size; empty if there is none."""
        if _may_be_less(self.low, other.low, dims):
            return _text(self.low)
        return _text(self.high) if _may_be_less(other.high, self.high, dims) else ""


def _bound(bound: LockedBound, dims: Mapping[str, str]) -> Bound | str:
    if not isinstance(bound, str):
        return bound
    try:
        size = parse_expression(bound)
    except ValueError:
        return bound
    return Size(factors={dims.get(name, name): factor for name, factor in size.factors.items()}, offset=size.offset)


def _may_be_less(one: Bound | str, other: Bound | str, dims: Mapping[str, LockedDim]) -> bool:
    """Whether one bound is below the other at some sizes; True also if that cannot be known."""
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return one < other
    left, right = _expression(one), _expression(other)
    if left is None or right is None:
        return str(one) != str(other)
    gap = difference(left, right)
    known = {name: (dim.min, dim.max, *dim.separate) for name, dim in dims.items()}
    return not gap.factors.keys() <= known.keys() or lowest(gap, known)[0] < 0


def _expression(bound: Bound | str) -> Size | None:
    if isinstance(bound, Size):
        return bound
    # JSON's `1e999` is an infinity, of which there is no integer.
    is_whole = isinstance(bound, (int, float)) and math.isfinite(bound) and bound == int(bound)
    return Size(offset=int(bound)) if is_whole else None


def _text(bound: Bound | str) -> str:
    return number_text(bound) if isinstance(bound, (int, float)) else str(bound)
