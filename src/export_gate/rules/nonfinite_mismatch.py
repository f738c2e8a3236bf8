"""NaN or infinity where eager has none (or elsewhere), or where the contract forbids them."""

from __future__ import annotations

from collections.abc import Iterator

from export_gate.rules.base import Finding, Rule
from export_gate.rules.blame import Blame
from export_gate.rules.cases import differing_outputs
from export_gate.rules.measure import Measured, Measurement
from export_gate.rules.numbers import describe_nonfinite
from export_gate.rules.special_values import special_advice


def check(measured: Measured) -> Iterator[Finding]:
    """One finding for each output of each target, at the case with the most positions."""
    for differing in differing_outputs(measured, "nonfinite"):
        is_passed_on = differing.blame.cure in ("no-nonfinite", "no-negative-zeros")
        # Where the model itself makes NaN, the input's own values are not to blame.
        hint = (
            special_advice(measured.contract, differing.blame)
            if is_passed_on and differing.blame.cause == "special-value"
            else _of_logarithm(differing.blame) or _hint(measured.contract.name, differing.worst)
        )
        yield differing.finding(RULE, describe_nonfinite(differing.worst), hint)


LOGARITHMS = {"sigmoid": "F.logsigmoid(x)", "softmax": "F.log_softmax(x, dim)", "_softmax": "F.log_softmax(x, dim)"}
"""Functions whose smallest values a runtime may round to 0 -> what computes their logarithm without that."""


def _of_logarithm(blame: Blame) -> str:
    """The step where the first wrong node is one whose logarithm is likely to be taken; else empty."""
    guilty = blame.trace.guilty if blame.trace else None
    name = guilty.operator.removeprefix("aten.").partition(".")[0] if guilty else ""
    if name not in LOGARITHMS:
        return ""
    kind = name.lstrip("_")
    return (
        f"The smallest values of `{kind}` are 0 in one of them and not in the other, and what follows makes that "
        f"infinite: where the model takes the logarithm of `{kind}`, write `{LOGARITHMS[name]}`; before a division, "
        "add a small number or clamp."
    )


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
