"""Turn a faulty comparison into sentences and detail lines: what was measured, where, and its distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence

from export_gate.rules.cases import Fault
from export_gate.rules.wording import apart, exact, index, round_up, scientific
from export_gate.wall.equivalence import Norm, lacks_axis_norms, total, worst_norm
from export_gate.wall.observation import Comparison, NonfiniteCount
from export_gate.wall.tolerance import is_inexact

QUANTILES = ("50%", "90%", "99%", "99.9%", "100%")


def describe_value(fault: Fault) -> str:
    """`max |P-M| 3.1e-03 > 1.0e-05 + 1.0e-05 * 2.4 = 3.4e-05`, or the number of elements that differ."""
    comparison, tolerance = fault.comparison, fault.tolerance
    if not is_inexact(comparison.expected_dtype):
        return (
            f"{comparison.mismatched_elements} of {comparison.elements} elements differ, {comparison.expected_dtype} "
            f"is compared exactly: largest |P-M| {exact(comparison.max_abs_diff)}"
        )
    if lacks_axis_norms(comparison, tolerance):
        return f"the tolerance has axis {tolerance.axis}, but no norms along it were observed"
    norm = worst_norm(comparison, tolerance)
    measured, allowed = apart(norm.measured, norm.allowed)
    along = "" if norm.index is None else f" at index {norm.index} of axis {tolerance.axis}"
    sign = ">" if norm.measured > norm.allowed else "is not within"
    bound = f"{scientific(tolerance.atol or 0.0)} + {scientific(tolerance.rtol or 0.0)} * {norm.scale:.2g} = {allowed}"
    return f"max |P-M|{along} {measured} {sign} {bound}"


def describe_nonfinite(fault: Fault) -> str:
    """Where the masks differ, or the non-finite elements that `forbid` does not allow."""
    comparison = fault.comparison
    sides = f"expected {_counts(comparison.expected_nonfinite)}, got {_counts(comparison.actual_nonfinite)}"
    if comparison.nonfinite_mismatched:
        return (
            f"NaN or inf at other positions: {comparison.nonfinite_mismatched} of {comparison.elements} elements, "
            f"first at {index(comparison.nonfinite_where)} ({sides})"
        )
    return f"non-finite elements where the contract forbids them: {sides}"


def describe_fault(fault: Fault) -> str:
    """The fault of whatever kind, in the words of that kind's rule."""
    comparison = fault.comparison
    match fault.kind:
        case "dtype":
            return f"expected dtype {comparison.expected_dtype}, got {comparison.actual_dtype}"
        case "shape":
            return f"expected shape {comparison.expected_shape}, got {comparison.actual_shape}"
        case "nonfinite":
            return describe_nonfinite(fault)
        case "value":
            return describe_value(fault)


def fault_norm(fault: Fault) -> Norm | None:
    """The inequality that a value fault broke; None for integers and for the other kinds."""
    comparison, tolerance = fault.comparison, fault.tolerance
    if fault.kind != "value" or not is_inexact(comparison.expected_dtype) or lacks_axis_norms(comparison, tolerance):
        return None
    return worst_norm(comparison, tolerance)


def measured_and_allowed(fault: Fault) -> tuple[float | None, float | None]:
    """The two sides of the broken inequality; for integers, the number of differing elements and zero."""
    if fault.kind == "value" and not is_inexact(fault.comparison.expected_dtype):
        return float(fault.comparison.mismatched_elements), 0.0
    norm = fault_norm(fault)
    return (norm.measured, norm.allowed) if norm else (None, None)


def needed_atol(faults: Sequence[Fault]) -> float | None:
    """The smallest atol, rounded up, under which all these faults would pass with their rtol; None if there is none."""
    norms = [(fault_norm(fault), fault.tolerance.rtol or 0.0) for fault in faults]
    excesses = [norm.measured - rtol * norm.scale for norm, rtol in norms if norm is not None]
    if len(excesses) < len(norms) or not all(math.isfinite(excess) and excess > 0 for excess in excesses):
        return None
    return round_up(max(excesses))


def spread(comparison: Comparison, expected: str, actual: str) -> tuple[str, ...]:
    """Detail lines: the worst entry with both values, counts, quantiles, top-1 agreement; none without numbers."""
    if comparison.elements == 0:
        return ()
    values = f"{expected} {exact(comparison.expected_at)}, {actual} {exact(comparison.actual_at)}"
    lines = [
        f"largest difference at {index(comparison.where)}: {values}",
        f"elements that differ: {comparison.mismatched_elements} of {comparison.elements}",
    ]
    if comparison.error_quantiles:
        pairs = zip(QUANTILES, comparison.error_quantiles, strict=False)
        lines.append(f"quantiles of |P-M|: {', '.join(f'{name} {scientific(value)}' for name, value in pairs)}")
    if comparison.top1_agreement is not None:
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
