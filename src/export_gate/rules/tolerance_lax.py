"""A tolerance that is larger than a thousandth of the output, which agrees all the same."""

from __future__ import annotations

from collections.abc import Iterator

from export_gate.rules.base import Finding, Rule
from export_gate.rules.measure import Measured
from export_gate.rules.tolerances import Lax, lax_outputs
from export_gate.rules.wording import scientific, targets_key


def check(measured: Measured) -> Iterator[Finding]:
    """One warning for each output whose tolerance is too large to tell, and that agrees at a smaller one."""
    return (_finding(measured, lax) for lax in lax_outputs(measured) if not lax.failing)


def _finding(measured: Measured, lax: Lax) -> Finding:
    worst, model = lax.leaves[0], measured.contract.name
    assert worst.norm is not None
    words = (
        f"the tolerance of {scientific(worst.norm.allowed)} exceeds a thousandth of the output (at most "
        f"{worst.norm.scale:.2g}); it agrees at a thousandth as well"
    )
    hint = (
        f"Set {targets_key(measured.contract, lax.target, 'tolerance', 'atol')} to "
        f"{scientific(max(1e-4 * lax.scale, 2 * worst.norm.measured))}, so that a wrong output of this size fails."
    )
    return lax.finding(model, RULE.name, "warning", words, hint)


RULE = Rule(
    name="tolerance-lax",
    severity="warning",
    summary="A tolerance is larger than a thousandth of the output that it is for.",
    stage="compare",
    waivable=None,
    owner="contract",
    check=check,
)
