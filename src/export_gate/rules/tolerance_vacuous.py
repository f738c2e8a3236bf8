"""An output that passes only because its tolerance cannot fail."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from export_gate.rules.advice import BY_CAUSE
from export_gate.rules.base import Finding, Rule
from export_gate.rules.measure import Measured
from export_gate.rules.tolerances import Lax, lax_outputs
from export_gate.rules.weights import weights_of, weights_words
from export_gate.rules.wording import targets_key
from export_gate.wall.words import rounded


def check(measured: Measured) -> Iterator[Finding]:
    """One finding for each output that differs by more than a thousandth of itself under a tolerance that allows it."""
    return (_finding(measured, lax) for lax in lax_outputs(measured) if lax.failing)


def _finding(measured: Measured, lax: Lax) -> Finding:
    worst, model = lax.failing[0], measured.contract.name
    weights = weights_of(measured, lax.target)
    assert worst.norm is not None
    words = (
        f"the tolerance cannot fail: the output is at most {rounded(worst.norm.scale)} and "
        f"{rounded(worst.norm.allowed)} is allowed; it differs by {rounded(worst.norm.measured)}, more than a "
        "thousandth of it"
    )
    hint = (
        "The artifact's values are wrong, or the output is too small for float32: compare both by hand, scale the "
        f"output up, or write {targets_key(measured.contract, lax.target, 'tolerance', 'atol')} for its size, about "
        f"{rounded(1e-4 * lax.scale)}."
    )
    found = lax.finding(model, RULE, words, hint)
    if weights is None or not weights.differing_count or weights.quantised:
        return found
    return replace(found, owner="artifact", cause="weights", evidence=weights_words(weights), hint=BY_CAUSE["weights"])


RULE = Rule(
    name="tolerance-vacuous",
    severity="violation",
    summary="An output passes only because its tolerance cannot fail.",
    stage="compare",
    waivable=("target", "output", "case"),
    check=check,
)
