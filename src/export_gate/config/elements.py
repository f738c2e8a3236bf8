"""The numbers that a dtype can hold."""

from __future__ import annotations

import sys

from export_gate.config.kinds import Scope, is_number
from export_gate.config.nodes import Node

_INTEGER_BITS = {"int64": 63, "int32": 31, "int16": 15, "int8": 7}

BOUNDS: dict[str, tuple[float, float]] = {
    **{dtype: (-(2**bits), 2**bits - 1) for dtype, bits in _INTEGER_BITS.items()},
    "uint8": (0, 255),
    **dict.fromkeys(("float64", "complex128"), (-sys.float_info.max, sys.float_info.max)),
    # As formulas, since the digits say nothing: (2 - 2^-mantissa bits) * 2^largest exponent.
    **dict.fromkeys(("float32", "complex64"), (-(2 - 2**-23) * 2.0**127, (2 - 2**-23) * 2.0**127)),
    "float16": (-65504.0, 65504.0),
    "bfloat16": (-(2 - 2**-7) * 2.0**127, (2 - 2**-7) * 2.0**127),
}
"""Smallest and largest finite value of each numeric dtype."""


def is_whole(dtype: str) -> bool:
    """Whether the dtype is an integer type."""
    return dtype.startswith(("int", "uint"))


def verify_element(item: Node, dtype: str, scope: Scope) -> None:
    """The dtype can hold the number."""
    number = item.value
    if dtype == "bool":
        if not isinstance(number, bool):
            scope.problems.expected(item, "true or false in a bool tensor")
        return
    low, high = BOUNDS[dtype]
    if not is_number(number) or not low <= number <= high or (is_whole(dtype) and not isinstance(number, int)):
        what = "a whole number" if is_whole(dtype) else "a number"
        scope.problems.expected(item, f"{what} that {dtype} can hold, {low} to {high}")
