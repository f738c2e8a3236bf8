"""NaN or infinity where eager has none (or elsewhere), or where the contract forbids them."""

from __future__ import annotations

from collections.abc import Iterator

from export_gate.rules.base import Finding, Rule
from export_gate.rules.cases import differing_outputs
from export_gate.rules.measure import Measured, Measurement
from export_gate.rules.numbers import describe_nonfinite
from export_gate.rules.special_values import special_advice


def check(measured: Measured) -> Iterator[Finding]:
    """One finding for each output of each target, at the case with the most positions."""
    for differing in differing_outputs(measured, "nonfinite"):
        is_passed_on = differing.blame.cure == "no-nonfinite"
        # Where the model itself makes NaN, the input's own values are not to blame.
        hint = (
            special_advice(measured.contract, differing.blame)
            if is_passed_on and differing.blame.cause == "special-value"
            else _hint(measured.contract.name, differing.worst)
        )
        yield differing.finding(RULE, describe_nonfinite(differing.worst), hint)


def _hint(model: str, worst: Measurement) -> str:
    key = f"`models.{model}.outputs.{worst.comparison.output}.nonfinite`"
    if worst.comparison.nonfinite_mismatched == 0:
        return (
            f"Keep the output finite for every input in range (clamp before log, exp and division), or set {key} to "
            "`match` to accept NaN and inf where eager has them too."
        )
    return (
        "Look for softmax over a row that is masked everywhere, 0/0, log(0), overflow in float16 and max or argmax "
        "over NaN: runtimes differ there. Make the model's result explicit (`torch.where`, a finite mask value), or "
        f"set {key} to `allow` to leave non-finite elements out."
    )


RULE = Rule(
    name="nonfinite-mismatch",
    severity="violation",
    summary="An output has NaN or infinity at other positions than eager's, or where the contract forbids them.",
    stage="compare",
    waivable=("target", "output", "case"),
    check=check,
)
