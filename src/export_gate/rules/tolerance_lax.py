"""A tolerance that is larger than a thousandth of the output, which agrees all the same."""

from __future__ import annotations

from collections.abc import Iterator

from export_gate.rules.base import Finding, Rule
from export_gate.rules.measure import Measured
from export_gate.rules.tolerances import Lax, lax_outputs
from export_gate.rules.wording import targets_key
from export_gate.wall.noise import MOST_TELLING, TELLING
from export_gate.wall.words import count, rounded


def check(measured: Measured) -> Iterator[Finding]:
    """One warning for each output whose tolerance is too large to tell, and that agrees at a smaller one."""
    return (_finding(measured, lax) for lax in lax_outputs(measured) if not lax.failing)


def _finding(measured: Measured, lax: Lax) -> Finding:
    worst, model = lax.leaves[0], measured.contract.name
    assert worst.norm is not None
    difference, telling = worst.norm.measured, TELLING * max(lax.scale, worst.norm.scale)
    apart = worst.comparison.sentinels
    besides = f", besides {count(apart.count, 'value')} far above the others" if apart else ""
    words = (
        f"the tolerance of {rounded(worst.norm.allowed)} exceeds a thousandth of the output (at most "
        f"{rounded(worst.norm.scale)}{besides}); "
    )
    if difference > telling:  # it was declared, and zeros or another input's output would still fail
        words += f"so does the largest difference, {rounded(difference)}"
        hint = "Find out why it differs by that much. Other outputs would still fail under this tolerance."
    else:
        words += "it agrees at a thousandth as well"
        # The rtol alone may be what is too large.
        part = "rtol" if (worst.tolerance.rtol or 0.0) > MOST_TELLING else "atol"
        enough = max(1e-4 * lax.scale, min(2 * difference, telling)) / (lax.scale if part == "rtol" else 1.0)
        key = targets_key(measured.contract, lax.target, "tolerance", part)
        hint = f"Set {key} to {rounded(enough)}, so that a wrong output of this size fails."
    return lax.finding(model, RULE, words, hint)


RULE = Rule(
    name="tolerance-lax",
    severity="warning",
    summary="A tolerance is larger than a thousandth of the output that it is for.",
    stage="compare",
    waivable=None,
    owner="contract",
    check=check,
)
