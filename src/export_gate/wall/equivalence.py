"""Find the faults of a comparison, in the order that defines equivalence: dtype, shape, non-finite masks, values.

Source: section 3 of the design. A NaN among the measured numbers never passes: every inequality is written so that it
must hold, not so that its opposite must fail.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from export_gate.wall.contract import Tolerance
from export_gate.wall.noise import MOST_TELLING, Noise, telling_bound, telling_share
from export_gate.wall.observation import Comparison, NonfiniteCount
from export_gate.wall.tolerance import is_inexact

FaultKind = Literal["dtype", "shape", "nonfinite", "value"]
FAULT_KINDS: tuple[FaultKind, ...] = ("dtype", "shape", "nonfinite", "value")
"""In the order of precedence; `<kind>-mismatch` is the rule that reports it."""
NonfinitePolicy = Literal["match", "forbid", "allow"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Norm:
    """One inequality `measured <= atol + rtol * scale`."""

    measured: float
    """max |P-M|."""
    scale: float
    """max |M|."""
    allowed: float
    index: int | None = None
    """Index of the tolerance axis; None is the whole leaf."""

    @property
    def holds(self) -> bool:
        """False for a NaN or infinity on either side: a bound without limit checks nothing."""
        return math.isfinite(self.measured) and math.isfinite(self.allowed) and self.measured <= self.allowed

    @property
    def ratio(self) -> float:
        """Measured / allowed; infinite where the quotient says nothing."""
        return ratio(self.measured, self.allowed)


def ratio(measured: float | None, allowed: float | None) -> float:
    """Measured / allowed; infinite if there is no number or nothing is allowed."""
    if measured is None or allowed is None or not (math.isfinite(measured) and math.isfinite(allowed)):
        return math.inf
    if allowed > 0:
        return measured / allowed
    # Nothing is allowed, as for integers: no difference is fine, any other is infinitely too much.
    return 0.0 if measured == 0 == allowed else math.inf


def faults(comparison: Comparison, tolerance: Tolerance, nonfinite: NonfinitePolicy) -> tuple[FaultKind, ...]:
    """The differences between the actual leaf and the expected one, the decisive one first; none if equivalent.

    Non-finite masks and values are two faults: where a waiver accepts the masks, the finite entries still count.
    """
    # Across dtypes and shapes nothing was measured: the numbers are zeros, which would pass.
    if comparison.expected_dtype != comparison.actual_dtype:
        return ("dtype",)
    if comparison.expected_shape != comparison.actual_shape:
        return ("shape",)
    masks: tuple[FaultKind, ...] = ("nonfinite",) if _breaks_policy(comparison, nonfinite) else ()
    return (*masks, "value") if _is_over(comparison, tolerance) else masks


def first_fault(comparison: Comparison, tolerance: Tolerance, nonfinite: NonfinitePolicy) -> FaultKind | None:
    """The decisive difference, or None if the leaves are equivalent."""
    return next(iter(faults(comparison, tolerance, nonfinite)), None)


def worst_norm(comparison: Comparison, tolerance: Tolerance) -> Norm:
    """The inequality with the largest ratio: over the whole leaf and, with a tolerance axis, over each of its indices.

    The bound of the whole leaf follows from the bounds of all indices; it is kept for leaves that lack the axis.
    """
    norms = [whole_norm(comparison, tolerance)]
    apart = _sentinel_norm(comparison, tolerance)
    norms += [] if apart is None else [apart]
    if tolerance.axis is not None:
        norms += [_norm(n.max_abs_diff, n.expected_max_abs, tolerance, n.index) for n in comparison.per_axis]
    # `holds` before the ratio, which may round to 1 although the bound is exceeded.
    # If both ratios are equal, report the index: it is more specific than the whole leaf.
    return max(norms, key=lambda norm: (not norm.holds, norm.ratio, norm.index is not None))


def whole_norm(comparison: Comparison, tolerance: Tolerance) -> Norm:
    """The inequality over the whole leaf but for placeholders."""
    return _norm(comparison.max_abs_diff, comparison.expected_max_abs, tolerance)


def failing_norms(comparison: Comparison, tolerance: Tolerance) -> tuple[Norm, ...]:
    """The inequalities that do not hold: of each index of the tolerance axis, or of the whole leaf without one."""
    norms = [_norm(n.max_abs_diff, n.expected_max_abs, tolerance, n.index) for n in comparison.per_axis]
    if tolerance.axis is None or not norms:
        norms = [whole_norm(comparison, tolerance)]
    return tuple(norm for norm in norms if not norm.holds)


def is_excused(comparison: Comparison, tolerance: Tolerance, noise: Noise) -> bool:
    """Whether float32 cannot tell the artifact from the exact result: `|P - M64| <= allowed + K * floor`.

    With a tolerance axis that must hold at each index that exceeds its tolerance. Placeholders are never excused.
    """
    own = _sentinel_norm(comparison, tolerance)
    if own is not None and not own.holds:
        return False
    # Without a failing norm, the leaf is over because its norms along the axis are unknown: no noise excuses that.
    return bool(failing_norms(comparison, tolerance)) and worst_noise(comparison, tolerance, noise).holds


def worst_noise(comparison: Comparison, tolerance: Tolerance, noise: Noise) -> Norm:
    """`|P - M64| <= allowed + K * floor` at its largest ratio, of the inequalities that the tolerance alone breaks."""
    at = {found.index: found for found in noise.per_axis}
    norms = []
    for norm in failing_norms(comparison, tolerance):
        known = noise if norm.index is None else at.get(norm.index)
        # Noise that was not measured at this index excuses nothing there.
        measured, floor = (math.inf, 0.0) if known is None else (known.distance, known.floor)
        norms.append(replace(norm, measured=measured, allowed=norm.allowed + noise.factor * floor))
    return max(norms, key=lambda norm: (not norm.holds, norm.ratio))


def second_tolerance(tolerance: Tolerance) -> Tolerance:
    """What an output must agree within as well, if its atol allows more than a thousandth of it."""
    return replace(tolerance, atol=0.0, rtol=telling_share(tolerance.rtol))


def is_lax(comparison: Comparison, tolerance: Tolerance) -> bool:
    """Whether the bound is too large, for an output of this size, to tell a right one from a wrong one."""
    scale = comparison.expected_max_abs
    allowed = _norm(0.0, scale, tolerance).allowed
    # Above zero: an output of zeros has no size that a bound could be too large for.
    return allowed > min(telling_bound(tolerance.rtol, scale), MOST_TELLING * scale) > 0


def lacks_axis_norms(comparison: Comparison, tolerance: Tolerance) -> bool:
    """Whether norms along the tolerance axis would decide but were not observed, e.g. in results judged again.

    A difference within atol alone passes at every index, and a leaf without that axis is judged as a whole.
    """
    if tolerance.axis is None or comparison.per_axis or comparison.max_abs_diff <= (tolerance.atol or 0.0):
        return False
    rank = len(comparison.expected_shape)
    return -rank <= tolerance.axis < rank


def total(count: NonfiniteCount) -> int:
    """All non-finite elements."""
    return count.nan + count.posinf + count.neginf


def _sentinel_norm(comparison: Comparison, tolerance: Tolerance) -> Norm | None:
    """The inequality of placeholders, which have a scale of their own."""
    apart = comparison.sentinels
    return None if apart is None else _norm(apart.max_abs_diff, apart.expected_max_abs, tolerance)


def _norm(measured: float, scale: float, tolerance: Tolerance, index: int | None = None) -> Norm:
    atol, rtol = tolerance.atol or 0.0, tolerance.rtol or 0.0
    return Norm(measured=measured, scale=scale, allowed=atol + rtol * scale, index=index)


def _is_over(comparison: Comparison, tolerance: Tolerance) -> bool:
    if not is_inexact(comparison.expected_dtype) and comparison.mismatched_elements != 0:
        return True
    return lacks_axis_norms(comparison, tolerance) or not worst_norm(comparison, tolerance).holds


def _breaks_policy(comparison: Comparison, nonfinite: NonfinitePolicy) -> bool:
    if nonfinite == "allow":
        return False
    if comparison.nonfinite_mismatched != 0:
        return True
    return nonfinite == "forbid" and total(comparison.expected_nonfinite) + total(comparison.actual_nonfinite) > 0
