"""Map positive numbers to positions on a logarithmic axis between whole powers of ten."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from export_gate.report.charts.record import Tick

FAULT, ZERO = 16.0, 18.0
"""Strips above and below a vertical scale, for what has no place on a logarithmic one: no number, and 0."""
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogScale:
    """A scale from 10**low at `start` to 10**high at `end`; `end` may be smaller than `start`."""

    low: int
    high: int
    start: float
    end: float

    def at(self, value: float) -> float:
        """The position of a number; values outside the scale, or not positive, are put at the nearer end."""
        return self.at_power(math.log10(value)) if value > 0 else self.start

    def at_power(self, power: float) -> float:
        """The position of 10**power."""
        share = (power - self.low) / (self.high - self.low)
        return self.start + min(max(share, 0.0), 1.0) * (self.end - self.start)

    def powers(self, most: int) -> range:
        """Whole powers of ten to mark, thinned evenly if there are more than `most`."""
        return range(self.low, self.high + 1, max(1, math.ceil((self.high - self.low) / most)))

    def ticks(self, most: int = 6) -> tuple[Tick, ...]:
        """Ticks at these powers, with labels."""
        return tuple(Tick(at=self.at_power(power), label=power_of_ten(power)) for power in self.powers(most))


def log_scale(values: Iterable[float], start: float, end: float) -> LogScale:
    """The smallest scale that contains all positive finite `values`; at least one decade."""
    powers = [math.log10(value) for value in values if value > 0 and math.isfinite(value)]
    low = math.floor(min(powers, default=-6.0))
    return LogScale(low=low, high=max(math.ceil(max(powers, default=0.0)), low + 1), start=start, end=end)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heights:
    """Positions on the vertical axis of one panel."""

    scale: LogScale
    roof: float
    """Height of what is not a number, or infinite."""
    floor: float
    """Height of 0."""

    def of(self, value: float | None) -> float:
        """The height of a value's mark."""
        if value is None or not math.isfinite(value):
            return self.roof
        return self.scale.at(value) if value > 0 else self.floor

    @property
    def ticks(self) -> tuple[Tick, ...]:
        """Ticks of the scale, and one without a line at 0."""
        return (*self.scale.ticks(4), Tick(at=self.floor, label="0", line=False))


def heights(values: Iterable[float], top: float, bottom: float) -> Heights:
    """The axis of a panel that contains all positive finite `values`."""
    scale = log_scale(values, bottom - ZERO, top + FAULT)
    return Heights(scale=scale, roof=top + FAULT / 2, floor=bottom - ZERO / 2)


def power_of_ten(power: int) -> str:
    """`10⁻⁶`; `1` and `10` as they are."""
    return f"10{str(power).translate(SUPERSCRIPTS)}" if power not in (0, 1) else str(10**power)
