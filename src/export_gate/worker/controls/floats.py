"""Draws for floating-point tensors, as float64 values before they are rounded to the element type."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from export_gate.worker.controls.intervals import Interval
from export_gate.worker.controls.stream import Floats, Stream

NARROW = 20.0
"""Up to this magnitude a range has no `large` values."""


WHOLE = {4: math.inf, 5: -math.inf}
"""Indices of non-finite draws that are one infinity everywhere."""


def fitting_families(interval: Interval, nonfinite: tuple[str, ...]) -> tuple[str, ...]:
    """Families that give different values in this interval."""
    if interval.width == 0:
        return ("normal", "nonfinite") if nonfinite else ("normal",)
    families = ["normal", "uniform", "halves", "constant", "low", "high", "offset", "sweep", "ends", "bands"]
    if interval.low <= 0 <= interval.high:
        families.append("tiny")
    if interval.low < 0 < interval.high:
        families.append("zeros")
    # Here `low` would be zeros under another name.
    elif interval.low == 0:
        families[families.index("low")] = "zeros"
    elif interval.high == 0:
        families[families.index("high")] = "zeros"
    if interval.magnitude > NARROW:
        families.append("large")
    return (*families, "nonfinite") if nonfinite else tuple(families)


def draw_floats(family: str, interval: Interval, count: int, stream: Stream, row: int = 1) -> Floats:
    """`count` values of a finite family, inside the interval; `row` is the length of the last axis."""
    if interval.width == 0:
        return np.full(count, interval.low)
    match family:
        case "uniform":
            values = interval.low + stream.uniform(count) * interval.width
        case "halves":
            values = _halves(interval, count, stream)
        case "constant" | "zeros" | "low" | "high" | "ends":
            values = _flat(family, interval, count, stream)
        case "tiny":
            values = _tiny(interval, count, stream)
        case "bands":
            values = _bands(interval, count, max(row, 1), stream)
        case "offset":
            values = _offset(interval, count, stream)
        case "sweep":
            values = _sweep(interval, count)
        case "large":
            values = _large(interval, count, stream)
        case _:
            values = _bell(interval, count, stream)
    # Tails of a bell go beyond it, and rounding of `low + u * width` may.
    return np.clip(values, interval.low, interval.high)


def sprinkle(values: Floats, row: int, kinds: tuple[Literal["nan", "inf"], ...], index: int, stream: Stream) -> Floats:
    """Non-finite values at about one place in eight, at the edges of the first row, and over one whole row.

    `row` is the length of the last axis. Where both kinds are admitted, index 1 has NaN alone, 2 has infinities
    alone and later ones mix. The whole row has one value alone; the row after it stays finite where it is not the
    first. The indices of `WHOLE` fill the tensor with one infinity.
    """
    if values.size == 0:
        return values
    if index in WHOLE and "inf" in kinds:
        return np.full(values.shape, WHOLE[index])
    rows = values.reshape(-1, row)
    use = kinds if len(kinds) == 1 or index > 2 else (("nan",) if index == 1 else ("inf",))  # noqa: PLR2004 - see above
    palette = np.array([value for kind in use for value in {"nan": [math.nan], "inf": [math.inf, -math.inf]}[kind]])
    chosen = (stream.integers(0, 7, values.size) == 0).reshape(rows.shape)
    whole = int(stream.integers(0, len(rows) - 1, 1)[0])
    if len(rows) == 1:
        chosen[0, int(stream.integers(0, row - 1, 1)[0])] = True
    else:
        chosen[(whole + 1) % len(rows)] = False
        chosen[0, 0] = chosen[0, -1] = True
        chosen[whole] |= len(rows) > 3  # noqa: PLR2004 - fewer rows leave little beside a whole one
    filled = palette[stream.integers(0, len(palette) - 1, values.size)].reshape(rows.shape)
    if len(rows) > 3:  # noqa: PLR2004 - as above
        filled[whole] = filled[whole, 0]
    spread: Floats = np.where(chosen, filled, rows).reshape(values.shape)
    return spread


def _bell(interval: Interval, count: int, stream: Stream) -> Floats:
    """Standard normal where three deviations fit, else a bell over the interval."""
    if interval.low <= -3 and interval.high >= 3:  # noqa: PLR2004 - three standard deviations
        return stream.normal(count)
    return interval.low + interval.width / 2 + stream.normal(count) * (interval.width / 6)


def _flat(family: str, interval: Interval, count: int, stream: Stream) -> Floats:
    """One value everywhere, or one of two."""
    match family:
        case "zeros":
            return _signed_zeros(np.zeros(count), interval, stream)
        case "ends":
            return np.where(stream.integers(0, 1, count) == 1, interval.high, interval.low)
        case "low" | "high":
            return np.full(count, interval.low if family == "low" else interval.high)
        case _:
            return np.full(count, _bell(interval, 1, stream)[0])


def _halves(interval: Interval, count: int, stream: Stream) -> Floats:
    """Multiples of 1/2 near zero; of a smaller power of two where fewer than three fit."""
    # Far from zero a half is below the precision of float64, and the multiples would not fit into int64.
    step = max(0.5, 2.0 ** (math.frexp(interval.magnitude)[1] - 40))
    while math.floor(interval.high / step) - math.ceil(interval.low / step) < 2:  # noqa: PLR2004 - three values
        step /= 2
    least, most = math.ceil(interval.low / step), math.floor(interval.high / step)
    centre = min(max(0, least), most)
    multiples = stream.integers(max(least, centre - 8), min(most, centre + 8), count)
    return _signed_zeros(multiples.astype(np.float64) * step, interval, stream)


def _signed_zeros(values: Floats, interval: Interval, stream: Stream) -> Floats:
    """Half of the zeros negative, where the interval has negative numbers: `1 / x` and `atan2` tell them apart."""
    if interval.low >= 0:
        return values
    negative = (values == 0) & (stream.integers(0, 1, len(values)) == 1)
    return np.where(negative, -0.0, values)


def _tiny(interval: Interval, count: int, stream: Stream) -> Floats:
    """Magnitudes from a millionth of 1 (or of what the interval has) up to it, evenly spread over the powers of two."""
    powers = 2.0 ** -stream.integers(0, 20, count).astype(np.float64)
    values = powers * (0.5 + stream.uniform(count) / 2) * min(1.0, interval.magnitude)
    signs = np.where(stream.integers(0, 1, count) == 1, 1.0, -1.0)
    # The interval has zero in it, so one of the two signs fits, or the value is outside on both sides and is clipped.
    inside = (values * signs >= interval.low) & (values * signs <= interval.high)
    return np.where(inside, values * signs, -values * signs)


def _bands(interval: Interval, count: int, row: int, stream: Stream) -> Floats:
    """Each row uniform between two bounds of its own."""
    rows = -(-count // row)
    one, other = (interval.low + stream.uniform(rows) * interval.width for _ in range(2))
    low, width = np.repeat(np.minimum(one, other), row)[:count], np.repeat(abs(one - other), row)[:count]
    return low + stream.uniform(count) * width


def _offset(interval: Interval, count: int, stream: Stream) -> Floats:
    """1000 with a spread of 1 where that fits, else three quarters up the interval with a hundredth of its width."""
    noise = stream.normal(count)
    for centre in (1000.0, -1000.0):
        # No normal is further than six deviations out (see `Stream.normal`).
        if interval.low <= centre - 6 and centre + 6 <= interval.high:
            return centre + noise
    return interval.low + 0.75 * interval.width + noise * (interval.width / 100)


def _sweep(interval: Interval, count: int) -> Floats:
    """-20 to 20 in equal steps, or as much of it as the interval has; all of the interval if it has no part of it."""
    low, high = max(interval.low, -20.0), min(interval.high, 20.0)
    if low >= high:
        low, high = interval.low, interval.high
    return low + (high - low) * (np.arange(count, dtype=np.float64) / max(count - 1, 1))


def _large(interval: Interval, count: int, stream: Stream) -> Floats:
    """A bell a thousand times as wide, narrowed to the interval; what would leave it on one side goes to the other."""
    values = stream.normal(count) * min(1000.0, interval.magnitude / 4)
    inside = (values >= interval.low) & (values <= interval.high)
    return np.where(inside, values, -values)
