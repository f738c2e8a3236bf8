"""An output's values are outside the tolerance, or an integer output differs at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from export_gate.rules.base import Finding, Rule
from export_gate.rules.cases import differing_outputs
from export_gate.rules.measure import Measured, Measurement
from export_gate.rules.numbers import describe_value, measured_and_allowed, needed_atol, spread
from export_gate.rules.wording import exact, index, round_up, scientific, targets_key
from export_gate.wall.contract import ModelContract, TargetName


def check(measured: Measured) -> Iterator[Finding]:
    """One finding for each output of each target, at the case with the largest measured / allowed."""
    for differing in differing_outputs(measured, "value"):
        worst, target = differing.worst, differing.target
        hint = _hint(measured.contract, target, differing.faults)
        finding = differing.finding(RULE.name, describe_value(worst), hint)
        error, allowed = measured_and_allowed(worst)
        details = spread(worst.comparison, "eager", target) + finding.details
        yield replace(finding, measured=error, allowed=allowed, details=details)


def _hint(contract: ModelContract, target: TargetName, faults: Sequence[Measurement]) -> str:
    worst = faults[0].comparison
    if faults[0].lacks_axis:
        return "Run the gate again with this tolerance: norms for each index are computed while comparing, not later."
    if faults[0].noise is not None:
        return _rounding(faults[0])
    values = f"eager {exact(worst.expected_at)}, {target} {exact(worst.actual_at)}"
    where = f"The largest difference is at {index(worst.where)}: {values}."
    return f"{where} {_usual_cause(faults[0])} {_accept(contract, target, faults)}"


def _rounding(fault: Measurement) -> str:
    """An input of the project's own where eager is as far from the exact result."""
    assert fault.noise is not None
    noise = fault.noise
    return (
        f"Float32 cannot decide this input: eager itself is {scientific(noise.f64)} from the float64 result, the "
        f"artifact {scientific(noise.distance)}. It is an input of your own, so it stays a violation: set the "
        f"tolerance to {scientific(round_up(fault.comparison.max_abs_diff))} there, or make the model better "
        "conditioned."
    )


def _usual_cause(fault: Measurement) -> str:
    """A guess from size and spread of the difference; thresholds are orders of magnitude, not measurements."""
    comparison = fault.comparison
    is_rare = comparison.mismatched_elements * 10 <= comparison.elements
    if fault.is_exact:
        return (
            "Look for an argmax, sort or top-k over ties, a float rounded or cast to int, and integer division of "
            "negatives."
        )
    if fault.excess <= 10:  # noqa: PLR2004 - one order of magnitude
        return "Such a small excess usually comes from a different order of summation or a fused kernel."
    if is_rare:
        return "Few elements differ by much: look for ties, rounding, borders (padding, resize) and indices."
    return (
        "Most elements differ: look for an operator that behaves differently there, and for values baked in at export."
    )


def _accept(contract: ModelContract, target: TargetName, faults: Sequence[Measurement]) -> str:
    if faults[0].is_exact:
        return (
            "Integers and bools have no tolerance to widen: return the scores they come from, or make the choice "
            "unique."
        )
    atol = needed_atol(faults)
    if atol is None:
        return "No tolerance accepts this."
    return f"To accept the difference, set {targets_key(contract, target, 'tolerance', 'atol')} to {scientific(atol)}."


RULE = Rule(
    name="value-mismatch",
    severity="violation",
    summary="An output's values differ from eager's by more than the tolerance.",
    stage="compare",
    waivable=("target", "output", "case"),
    check=check,
)
