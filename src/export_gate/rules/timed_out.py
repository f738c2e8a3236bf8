"""A model took longer than its declared timeout."""

from __future__ import annotations

import math
from collections.abc import Iterator

from export_gate.rules.base import Finding, Rule
from export_gate.rules.failures import failures_of, finding
from export_gate.rules.measure import Measured
from export_gate.wall.observation import Failure


def check(measured: Measured) -> Iterator[Finding]:
    """One finding for each target (or the model) that was stopped."""
    contract = measured.contract
    for group in failures_of("timed-out", measured):
        failure = group[0].failure
        done, planned = _inputs(measured, failure)
        after = f" after {done} of {planned} control inputs" if planned else ""
        message = (
            f"{group[0].place(contract.name)}: not finished within the timeout of {contract.timeout_s:g} s; it was "
            f"stopped in stage {failure.stage}{after}"
        )
        # All of the time may have passed in this stage, or most of it before.
        needed = (
            f" (all {planned} take up to {_minutes(contract.timeout_s * planned / done)} like this)" if done else ""
        )
        yield finding(RULE.name, contract, group, message, _hint(contract.name, failure.stage, needed))


def _inputs(measured: Measured, failure: Failure) -> tuple[int, int]:
    """Control inputs that the stage had done, and those that it was to run; (0, 0) if it was not at one of them."""
    controls = measured.observation.controls
    names = [member.name for member in controls.inputs] if controls else []
    if failure.stage not in ("eager", "run") or failure.case not in names:
        return 0, 0
    return names.index(failure.case), len(names)


def _minutes(seconds: float) -> str:
    return f"{math.ceil(seconds)} s" if seconds <= 120 else f"{math.ceil(seconds / 60)} min"  # noqa: PLR2004


def _hint(model: str, stage: str, needed: str) -> str:
    raise_it = f"Raise `models.{model}.timeout`{needed}"
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
