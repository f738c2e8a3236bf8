"""A model took longer than its declared timeout."""

from __future__ import annotations

from collections.abc import Iterator

from export_gate.rules.base import Finding, Rule
from export_gate.rules.failures import failures_of, finding
from export_gate.rules.measure import Measured


def check(measured: Measured) -> Iterator[Finding]:
    """One finding for each target (or the model) that was stopped."""
    contract = measured.contract
    for group in failures_of("timed-out", measured):
        failure = group[0].failure
        message = (
            f"{group[0].place(contract.name)}: not finished within the timeout of {contract.timeout_s:g} s; it was "
            f"stopped in stage {failure.stage}"
        )
        yield finding(RULE.name, contract, group, message, _hint(contract.name, failure.stage))


def _hint(model: str, stage: str) -> str:
    raise_it = f"Raise `models.{model}.timeout`"
    if stage in ("run", "eager", "compare", "guards", "controls"):
        return (
            f"{raise_it}, or run less: lower `models.{model}.controls.limit`, `controls.budget` or the largest sizes "
            "in `dims`."
        )
    return f"{raise_it}; if this stage is usually fast, look in the details for what it waits for."


RULE = Rule(
    name="timed-out",
    severity="violation",
    summary="The model did not finish within its timeout.",
    stage=None,
    waivable=None,
    check=check,
)
