"""An output that passes only because its tolerance cannot fail."""

from __future__ import annotations

from collections.abc import Iterator

from export_gate.rules.base import Finding, Rule
from export_gate.rules.cases import other_cases
from export_gate.rules.diagnosis import weights_of, weights_words
from export_gate.rules.measure import Measured
from export_gate.rules.tolerances import Lax, lax_outputs
from export_gate.rules.wording import place, scientific, targets_key
from export_gate.wall.noise import TELLING


def check(measured: Measured) -> Iterator[Finding]:
    """One finding for each output that differs by more than a thousandth of itself under a tolerance that allows it."""
    return (_finding(measured, lax) for lax in lax_outputs(measured) if lax.failing)


def _finding(measured: Measured, lax: Lax) -> Finding:
    worst, model = lax.failing[0], measured.contract.name
    weights = weights_of(measured, lax.target)
    has_others = weights is not None and bool(weights.differing_count)
    assert worst.norm is not None
    return Finding(
        rule=RULE.name,
        severity="violation",
        model=model,
        target=lax.target,
        output=lax.output,
        case=worst.case,
        message=(
            f"{place(model, lax.target, lax.output, worst.case)}: the tolerance cannot fail: the output is at most "
            f"{worst.norm.scale:.2g} and {scientific(worst.norm.allowed)} is allowed; it differs by "
            f"{scientific(worst.norm.measured)}, more than a thousandth of it"
        ),
        hint=(
            "The artifact's values are wrong, or the output is too small for float32: compare both by hand, scale the "
            f"output up, or write {targets_key(measured.contract, lax.target, 'tolerance', 'atol')} for its size, "
            f"about {scientific(1e-4 * lax.scale)}."
        ),
        measured=worst.norm.measured,
        allowed=TELLING * lax.scale,
        occurrences=len(lax.failing),
        owner="artifact" if has_others else None,
        cause="weights" if has_others else "unknown",
        evidence=weights_words(weights) if weights is not None and has_others else (),
        details=other_cases([leaf.case for leaf in lax.failing]),
    )


RULE = Rule(
    name="tolerance-vacuous",
    severity="violation",
    summary="An output passes only because its tolerance cannot fail.",
    stage="compare",
    waivable=("target", "output", "case"),
    check=check,
)
