"""torch.export could not capture the model: why, at which line of the user's code, and what to change."""

from __future__ import annotations

from collections.abc import Iterator

from export_gate.rules.base import Finding, Rule
from export_gate.rules.export_advice import export_advice
from export_gate.rules.failures import failures_of, finding
from export_gate.rules.measure import Measured
from export_gate.rules.wording import first_line, place, plain, source_place
from export_gate.wall.observation import Failure


def check(measured: Measured) -> Iterator[Finding]:
    """One finding for the model: its targets share one export."""
    contract = measured.contract
    for group in failures_of("export-failed", measured):
        failure = group[0].failure
        where = place(contract.name, case=failure.case, at=group[0].where)
        at = f" at {source_place(failure.source)}" if failure.source else ""
        message = f"{where}: torch.export failed{at}: {failure.type}: {essence(failure)}"
        seen = measured.observation
        advice = export_advice(contract, failure, seen.recurrent, seen.export_trials)
        yield finding(RULE.name, contract, group, message, advice)


def essence(failure: Failure) -> str:
    """The line of torch's message that says what is wrong: below `Constraints violated` it is the first bullet."""
    bullets = [line for line in plain(failure.message).splitlines() if line.strip().startswith("- ")]
    if "Constraints violated" in failure.message and bullets:
        return first_line(bullets[0].strip().removeprefix("- "))
    return first_line(failure.message)


RULE = Rule(
    name="export-failed",
    severity="violation",
    summary="torch.export could not capture the model.",
    stage="export",
    waivable=None,
    owner="torch.export",
    cause="export",
    check=check,
)
