"""An output's values are outside the tolerance, or an integer output differs at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from export_gate.rules.advice import advice
from export_gate.rules.base import Finding, Rule
from export_gate.rules.blame import Blame
from export_gate.rules.cases import differing_outputs
from export_gate.rules.measure import Measured, Measurement
from export_gate.rules.numbers import describe_value, difference_in_words, measured_and_allowed, spread
from export_gate.rules.wording import round_up
from export_gate.wall.contract import ModelContract, TargetName
from export_gate.wall.words import rounded


def check(measured: Measured) -> Iterator[Finding]:
    """One finding for each output of each target, at the case with the largest measured / allowed."""
    for differing in differing_outputs(measured, "value"):
        worst, target = differing.worst, differing.target
        hint = _hint(measured.contract, target, differing.faults, differing.blame)
        finding = differing.finding(RULE, difference_in_words(worst, target), hint)
        error, allowed = measured_and_allowed(worst)
        details = (describe_value(worst), *spread(worst.comparison, "eager", target), *finding.details)
        yield replace(finding, measured=error, allowed=allowed, details=details)


def _hint(contract: ModelContract, target: TargetName, faults: Sequence[Measurement], blame: Blame) -> str:
    if faults[0].lacks_axis:
        return "Run the gate again with this tolerance: norms for each index are computed while comparing, not later."
    if faults[0].noise is not None:
        return _rounding(faults[0])
    return advice(contract, target, blame)


def _rounding(fault: Measurement) -> str:
    """The hint for an input of the project's own at which eager is as far from the exact result."""
    assert fault.noise is not None
    noise = fault.noise
    return (
        f"Float32 cannot decide this input: eager itself is {rounded(noise.f64)} from the float64 result, the "
        f"artifact {rounded(noise.distance)}. It is an input of your own, so it stays a violation: set the "
        f"tolerance to {rounded(round_up(fault.comparison.max_abs_diff))} there, or make the model better "
        "conditioned."
    )


RULE = Rule(
    name="value-mismatch",
    severity="violation",
    summary="An output's values differ from eager's by more than the tolerance.",
    stage="compare",
    waivable=("target", "output", "case"),
    check=check,
)
