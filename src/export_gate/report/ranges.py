"""Find numbers that no run writes, such as negative counts, before a rule divides by them or a chart draws them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from export_gate.rules.lock.record import LockedDim
from export_gate.wall.contract import Dim

SIGNED = frozenset(
    ("actual_at", "allowed", "axis", "declared", "expected_at", "factors", "found", "index", "kwargs", "measured",
     "offset", "range", "seed", "value", "values")
)  # fmt: skip
"""Fields that may be below zero; all others are counts, sizes, durations, places and magnitudes."""
LEAST = {"multiple_of": 1, "rows": 1}
FINITE = frozenset(("duration_s", "timeout_s"))


def impossible_numbers(value: Any, place: str, name: str = "") -> Iterator[str]:
    """Yield every number of a record that is out of its range, with its position.

    Args:
        value: the record, or a part of one.
        place: of the value in the file.
        name: of the field that holds it.
    """
    if is_dataclass(value):
        # An empty range of sizes has no first and last one, which rules rely on.
        if isinstance(value, (Dim, LockedDim)) and _is_empty(value):
            found = value.text if isinstance(value, Dim) else f"{value.min}..{value.max}"
            yield f"{place}: expected a range of sizes, got {found}"
        for field in fields(value):
            if field.name not in SIGNED:
                yield from impossible_numbers(getattr(value, field.name), f"{place}.{field.name}", field.name)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from impossible_numbers(item, f"{place}.{key}", name)
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from impossible_numbers(item, f"{place}[{index}]", name)
    elif isinstance(value, (int, float)):
        yield from _impossible_number(value, place, name)


def _is_empty(dim: Dim | LockedDim) -> bool:
    """Whether no size lies in the range; steps of less than 1 are reported as such."""
    return dim.min > dim.max or (isinstance(dim, Dim) and dim.multiple_of > 0 and not dim.sizes)


def _impossible_number(number: float, place: str, name: str) -> Iterator[str]:
    least = LEAST.get(name, 0)
    if number < least:
        yield f"{place}: expected at least {least}, got {number}"
    elif name in FINITE and not math.isfinite(number):
        yield f"{place}: expected a finite number, got {number}"
