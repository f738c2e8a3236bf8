"""Advise what to do about an operator that resizes, pools or upsamples to a size that is rounded."""

from __future__ import annotations

import math
import struct
from fractions import Fraction

from export_gate.wall.nodes import GuiltyNode

LARGEST_DENOMINATOR = 1000
"""Of the fraction that a scale factor is written as: 0.7 is 7 / 10."""


def size_advice(guilty: GuiltyNode | None, expected: int | None = None, actual: int | None = None) -> str:
    """What to write instead; empty if the node computes its size in another way.

    Args:
        guilty: the node at which sizes or values begin to differ.
        expected: the length of the first axis that differs; None if shapes agree.
        actual: the artifact's length of it.
    """
    if guilty is None:
        return ""
    if "upsample" in guilty.operator or "interpolate" in guilty.operator:
        return _resize(guilty, expected, actual)
    if "pool" in guilty.operator:
        return (
            f"`{guilty.operator}` rounds its output size: set `ceil_mode=False` and pad in the model by integer "
            "arithmetic on `x.shape` (`F.pad(x, (0, -w % stride))`), or narrow `dims` to sizes that agree."
        )
    if "arange" in guilty.operator:
        return (
            "A range with a fractional step rounds its length: count in integers and scale, `torch.arange(n) * step`, "
            "with `n` from `x.shape`."
        )
    return ""


def _resize(guilty: GuiltyNode, expected: int | None, actual: int | None) -> str:
    factors = dict.fromkeys(guilty.scale_factors)
    if not factors and "nearest" not in guilty.operator:
        return ""
    if not factors:
        return (
            "Each side rounds the place of a pixel in its own way: pick pixels by integer arithmetic in the model, "
            "which is the same everywhere (`x[..., torch.arange(n) * length // n]`, on each axis)."
        )
    shown = [words for factor in factors if (words := _two_precisions(factor, expected, actual))]
    because = f"{shown[0]}. " if shown else "The size is a rounded product with `scale_factor`. "
    ways = [way for factor in factors if (way := _integers(factor))]
    size = ways[0] if ways else "size=..."
    nearest = (
        " Where nearest pixels must agree, index with integer arithmetic (`x[..., torch.arange(n) * h // n, :]`)."
        if "nearest" in guilty.operator
        else ""
    )
    return (
        f"{because}Compute the size in integers: `{size}` instead of `scale_factor`.{nearest} Where the product was "
        "rounded, this changes eager's own size and pixels too."
    )


def _two_precisions(factor: float, expected: int | None, actual: int | None) -> str:
    """`0.7 * 90 is 62.99... in float64 and 63 in float32`, if these two round down to the two sizes."""
    if expected is None or actual is None or factor <= 0:
        return ""
    single = _float32(factor)
    # Around the length that gives such sizes: two more on both sides for what rounding moves.
    near = range(max(1, int(expected / factor) - 2), int((expected + 1) / factor) + 3)
    sizes = [n for n in near if (math.floor(factor * n), math.floor(_float32(single * n))) == (expected, actual)]
    if not sizes:
        return ""
    double, rounded = factor * sizes[0], _float32(single * sizes[0])
    return f"`{factor:g} * {sizes[0]}` is {_cut(double)} in float64 and {_cut(rounded)} in float32"


def _float32(value: float) -> float:
    rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    return rounded


def _cut(value: float) -> str:
    """`62.99...`, not rounded to 63, or `63`."""
    return f"{value:g}" if value == round(value) else f"{math.floor(value * 100) / 100:.2f}..."


def _integers(factor: float) -> str:
    """`size=(h * 7 // 10, ...)`."""
    fraction = Fraction(factor).limit_denominator(LARGEST_DENOMINATOR)
    if not fraction or abs(float(fraction) - factor) > 1e-9 * factor:
        return ""
    times = f" * {fraction.numerator}" if fraction.numerator != 1 else ""
    over = f" // {fraction.denominator}" if fraction.denominator != 1 else ""
    return f"size=(h{times}{over}, ...)"
