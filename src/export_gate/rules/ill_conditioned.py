"""A difference that float32 cannot decide: eager itself is as far from the exact result as the artifact."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from export_gate.rules.base import Finding, Rule
from export_gate.rules.cases import excused_outputs, other_cases
from export_gate.rules.measure import Measured, Measurement
from export_gate.rules.numbers import describe_noise
from export_gate.rules.wording import round_up, targets_key
from export_gate.wall.contract import TargetName
from export_gate.wall.words import rounded

SIZE_OF_OUTPUT = 0.1
"""A tolerance above this share of the output is about as large as the output itself, and tells nothing."""


def check(measured: Measured) -> Iterator[Finding]:
    """One warning for each output of each target, at the case with the largest difference."""
    families = {member.name: member.family for member in measured.observation.control_inputs}
    for target, leaves in excused_outputs(measured, "noise", lambda leaf: leaf.comparison.max_abs_diff):
        yield _finding(measured, target, leaves, families.get(leaves[0].case, ""))


def _finding(measured: Measured, target: TargetName, leaves: Sequence[Measurement], family: str) -> Finding:
    worst, model = leaves[0], measured.contract.name
    assert worst.noise is not None
    assert worst.norm is not None
    noise, norm = worst.noise, worst.norm
    gap = rounded(worst.comparison.max_abs_diff)
    return RULE.finding(
        model,
        (
            f"float32 cannot decide this {family} input: eager "
            f"and {target} differ by {gap}, more than the tolerance, but {target} is "
            f"{rounded(noise.distance)} from the float64 result and eager itself {rounded(noise.f64)}"
        ),
        hint=f"Nothing is known to be wrong. {_way(measured, target, worst)}",
        target=target,
        output=worst.output,
        case=worst.case,
        measured=norm.measured,
        allowed=norm.allowed,
        occurrences=len(leaves),
        details=(
            describe_noise(noise),
            f"bound: |{target} - float64| <= {rounded(norm.allowed)}, measured {rounded(norm.measured)}",
            *other_cases([leaf.case for leaf in leaves]),
        ),
    )


def _way(measured: Measured, target: TargetName, worst: Measurement) -> str:
    comparison, key = worst.comparison, targets_key(measured.contract, target, "tolerance")
    atol = round_up(comparison.max_abs_diff)
    better = "a larger eps, or float64 in that place, makes the model itself better conditioned"
    if atol <= SIZE_OF_OUTPUT * comparison.expected_max_abs:
        return f"A tolerance that holds here is `atol: {rounded(atol)}` in {key}; {better}."
    # It would pass wrong outputs of other inputs as well.
    return (
        f"This does not fail the check, and a tolerance as large as the difference could not tell wrong outputs: keep "
        f"{key} as it is; {better}."
    )


RULE = Rule(
    name="ill-conditioned",
    severity="warning",
    summary="A difference exceeds the tolerance, but not the rounding noise of eager itself.",
    stage="compare",
    waivable=None,
    owner="model",
    cause="rounding",
    check=check,
)
