"""Turn a faulty comparison into sentences and detail lines: what was measured, where, and its distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence

from export_gate.rules.measure import Measurement
from export_gate.rules.wording import apart, exact, index, round_up
from export_gate.wall.equivalence import total
from export_gate.wall.noise import Noise
from export_gate.wall.observation import Comparison, NonfiniteCount
from export_gate.wall.tolerance import is_inexact
from export_gate.wall.words import count, rounded

FEWEST_FOR_QUANTILES = 100
"""Elements: a quantile of fewer is one of them."""
EVERY_INTEGER = 2.0**53
"""Up to there float64, in which an entry is recorded, has every integer."""
QUANTILES = ("50%", "90%", "99%", "99.9%", "100%")


def describe_value(fault: Measurement) -> str:
    """`max |P-M| 3.1e-03 > 1.0e-05 + 1.0e-05 * 2.4 = 3.4e-05`, or the number of elements that differ."""
    comparison, tolerance, norm = fault.comparison, fault.tolerance, fault.broken
    if fault.is_exact:
        return (
            f"{comparison.mismatched_elements} of {comparison.elements} elements differ, {comparison.expected_dtype} "
            f"is compared exactly: largest |P-M| {exact(comparison.max_abs_diff)}"
        )
    if norm is None:
        return f"the tolerance has axis {tolerance.axis}, but no norms along it were observed"
    measured, allowed = apart(norm.measured, norm.allowed)
    along = "" if norm.index is None else f" at index {norm.index} of axis {tolerance.axis}"
    # NaN is not greater than anything.
    sign = ">" if norm.measured > norm.allowed else "is not within"
    bound = f"{rounded(tolerance.atol or 0.0)} + {rounded(tolerance.rtol or 0.0)} * {rounded(norm.scale)} = {allowed}"
    return f"max |P-M|{along} {measured} {sign} {bound}"


def difference_in_words(fault: Measurement, actual: str) -> str:
    """`the largest difference is 3.1e-03 at [5, 1] (eager 1.75, onnx 1.7531), allowed 3.4e-05`.

    The bound's formula instead, where there is no such number.
    """
    comparison, norm = fault.comparison, fault.broken
    is_float = not fault.is_exact
    expected_at, actual_at = (
        exact(value, is_float=True) if is_float else _whole(value)
        for value in (comparison.expected_at, comparison.actual_at)
    )
    # An output of one number has no places.
    at = f"at {index(comparison.where)} " if comparison.where != () else ""
    values = f"{at}(eager {expected_at}, {actual} {actual_at})"
    if fault.is_exact:
        most = ", most" if at else ""
        return (
            f"{comparison.mismatched_elements} of {comparison.elements} elements differ{most} {values}; "
            f"{comparison.expected_dtype} is compared exactly"
        )
    if norm is None or not norm.measured > norm.allowed:
        return describe_value(fault)
    measured, allowed = apart(norm.measured, norm.allowed)
    if norm.index is not None:
        return f"at index {norm.index} of axis {fault.tolerance.axis} it differs by {measured}, allowed {allowed}"
    return f"the largest difference is {measured} {values}, allowed {allowed}"


def _whole(value: float | None) -> str:
    """An integer with all its digits; far from zero, where a float skips integers, two that differ may look alike."""
    if value is None or not float(value).is_integer():
        return exact(value)
    return f"{'about ' if abs(value) >= EVERY_INTEGER else ''}{int(value)}"


def describe_nonfinite(fault: Measurement) -> str:
    """Where the masks differ, or the non-finite elements that `forbid` does not allow."""
    comparison = fault.comparison
    sides = f"expected {_counts(comparison.expected_nonfinite)}, got {_counts(comparison.actual_nonfinite)}"
    if comparison.nonfinite_mismatched:
        return (
            f"NaN or inf at other positions: {comparison.nonfinite_mismatched} of {comparison.elements} elements, "
            f"first at {index(comparison.nonfinite_where)} ({sides})"
        )
    return f"non-finite elements where the contract forbids them: {sides}"


def describe_noise(noise: Noise) -> str:
    """The noise floor of eager and the parts that it is made of."""
    return (
        f"noise floor of eager: {rounded(noise.floor)} (float64 {rounded(noise.f64)}, layout "
        f"{rounded(noise.layout)}, 1-ulp jitter {rounded(noise.jitter)} in {count(noise.draws, 'draw')})"
    )


def describe_fault(fault: Measurement) -> str:
    """The fault of whatever kind, in the words of that kind's rule."""
    comparison = fault.comparison
    match fault.fault:
        case "dtype":
            return f"expected dtype {comparison.expected_dtype}, got {comparison.actual_dtype}"
        case "shape":
            return f"expected shape {comparison.expected_shape}, got {comparison.actual_shape}"
        case "nonfinite":
            return describe_nonfinite(fault)
        case _:
            return describe_value(fault)


def measured_and_allowed(fault: Measurement) -> tuple[float | None, float | None]:
    """The two sides of the broken inequality; for integers, the number of differing elements and zero."""
    if fault.fault == "value" and fault.is_exact:
        return float(fault.comparison.mismatched_elements), 0.0
    return (fault.broken.measured, fault.broken.allowed) if fault.broken else (None, None)


def needed_atol(faults: Sequence[Measurement]) -> float | None:
    """The smallest atol, rounded up, under which all these faults would pass with their rtol; None if there is none."""
    broken = [(fault.broken, fault.tolerance.rtol or 0.0) for fault in faults]
    excesses = [norm.measured - rtol * norm.scale for norm, rtol in broken if norm is not None]
    if len(excesses) < len(broken) or not all(math.isfinite(excess) and excess > 0 for excess in excesses):
        return None
    return round_up(max(excesses))


def spread(comparison: Comparison, expected: str, actual: str) -> tuple[str, ...]:
    """Detail lines: the worst entry with both values, counts, quantiles, top-1 agreement; none without numbers."""
    if comparison.elements == 0:
        return ()
    is_float = is_inexact(comparison.expected_dtype)
    values = ", ".join(
        f"{side} {exact(value, is_float=True) if is_float else _whole(value)}"
        for side, value in ((expected, comparison.expected_at), (actual, comparison.actual_at))
    )
    lines = [
        f"largest difference at {index(comparison.where)}: {values}",
        f"elements that differ: {comparison.mismatched_elements} of {comparison.elements}",
    ]
    if comparison.error_quantiles and comparison.elements >= FEWEST_FOR_QUANTILES:
        pairs = zip(QUANTILES, comparison.error_quantiles, strict=False)
        lines.append(f"quantiles of |P-M|: {', '.join(f'{name} {rounded(value)}' for name, value in pairs)}")
    # Where every element differs, that the largest one is at the same place excuses nothing.
    # Of integers, such as indices, the largest is no better than any other.
    is_telling = is_float and comparison.mismatched_elements < comparison.elements
    if comparison.top1_agreement is not None and is_telling:
        lines.append(f"top-1 agreement along the last axis: {comparison.top1_agreement:.1%}")
    if total(comparison.expected_nonfinite) + total(comparison.actual_nonfinite):
        lines.append(
            f"non-finite: {expected} {_counts(comparison.expected_nonfinite)}, "
            f"{actual} {_counts(comparison.actual_nonfinite)}"
        )
    return tuple(lines)


def _counts(count: NonfiniteCount) -> str:
    kinds = ((count.nan, "NaN"), (count.posinf, "+inf"), (count.neginf, "-inf"))
    return ", ".join(f"{number} {kind}" for number, kind in kinds if number) or "none"
