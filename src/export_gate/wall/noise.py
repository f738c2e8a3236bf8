"""The noise floor of eager: how far float32 itself can be from the exact result, and what that excuses.

Source: measured on 44 networks, 103 healthy artifacts and 991 visible planted faults; docs/rules.md, `ill-conditioned`.
"""

from __future__ import annotations

from dataclasses import dataclass

SPREAD_FACTOR, FLAT_FACTOR = 2.0, 8.0
"""How many floors an artifact may be away from the float64 result. Inputs without spread within a row need more."""
JITTER_CAP = 16.0
"""Jitter counts up to this many times the other noise: uncapped it hides ties, rounding modes and comparisons."""
TELLING = 1e-3
"""A bound above this share of max|M| does not tell a right output from a wrong one."""
MOST_TELLING = 0.1
"""A declared rtol above this share allows outputs that are hardly those of the model."""
ATOL_BESIDE_RTOL = 4.0
"""An atol and rtol together may allow this many times what rtol alone does."""
FLAT_FAMILIES = frozenset({"low", "high", "constant", "zeros"})


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisNoise:
    """The noise at one index of the tolerance axis."""

    index: int
    distance: float
    f64: float
    layout: float = 0.0
    jitter: float = 0.0

    @property
    def floor(self) -> float:
        """The noise floor at this index."""
        return floor_of(self.f64, self.layout, self.jitter)


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """What eager's own rounding amounts to at one output of one control input. Computed only after a float mismatch.

    All maxima are over entries that are finite on every side. Layout and jitter are zero where the distance was
    excused before they were measured.
    """

    output: str
    case: str
    distance: float
    """max |P - M64|: the artifact against eager computed in float64."""
    f64: float
    """max |M - M64|."""
    layout: float = 0.0
    """max |M - M'|, M' eager at the same values in another memory layout."""
    jitter: float = 0.0
    """max |M - M'|, M' eager at inputs whose elements moved by 0 or 1 ulp."""
    draws: int = 0
    """Jittered inputs tried."""
    is_flat: bool = False
    """The input has no spread within a row."""
    per_axis: tuple[AxisNoise, ...] = ()
    """Filled at the indices of the tolerance axis that exceed their own tolerance."""

    @property
    def floor(self) -> float:
        """The noise floor of the whole output."""
        return floor_of(self.f64, self.layout, self.jitter)

    @property
    def factor(self) -> float:
        """How many floors are allowed."""
        return FLAT_FACTOR if self.is_flat else SPREAD_FACTOR


def telling_share(rtol: float | None) -> float:
    """The share of max|M| within which an output is right.

    An explicit rtol above it states that more is intended, as for a quantised model, unless it allows nearly anything.
    """
    declared = rtol or 0.0
    return max(TELLING, declared) if declared <= MOST_TELLING else TELLING


def telling_bound(rtol: float | None, scale: float) -> float:
    """The largest bound that still tells a right output from a wrong one, for an output of this size.

    An atol that adds a few times what rtol allows is in proportion, as the defaults of half precision are.
    """
    return max(TELLING, ATOL_BESIDE_RTOL * (rtol or 0.0)) * scale


def floor_of(f64: float, layout: float, jitter: float) -> float:
    """`max(f64, layout, min(jitter, 16 * max(f64, layout)))`."""
    sure = max(f64, layout)
    return max(sure, min(jitter, JITTER_CAP * sure))
