"""The eager model itself does not keep its contract: it raises at an input in range, or returns other outputs."""

from __future__ import annotations

from collections.abc import Iterator

from export_gate.contract import ModelContract
from export_gate.observation import Failure, ModelObservation
from export_gate.rules.base import Finding, Rule
from export_gate.rules.cases import other_cases
from export_gate.rules.failures import failure_details, failures_of
from export_gate.rules.wording import count, first_line, paragraph, place, source_place

ENDED = {
    "model": "the model could not be made",
    "controls": "the control set could not be made",
    "eager": "eager raised",
}


def check(contract: ModelContract, observation: ModelObservation) -> Iterator[Finding]:
    """One finding: for what ended the model before its targets, else for promises broken at control inputs."""
    groups = failures_of("contract-broken", contract, observation)
    if groups:
        yield _ended(contract, observation, groups[0][0].failure)
    elif observation.broken:
        yield _broken(contract, observation)


def _ended(contract: ModelContract, observation: ModelObservation, failure: Failure) -> Finding:
    at = f" at {source_place(failure.source)}" if failure.source else ""
    what = f"{ENDED[failure.stage]}{at}: {failure.type}: {first_line(failure.message)}"
    also = tuple(f"also at {promise.case}: {first_line(promise.message)}" for promise in observation.broken[:10])
    return Finding(
        rule=RULE.name,
        severity="violation",
        model=contract.name,
        case=failure.case,
        message=f"{place(contract.name, case=failure.case)}: {what}",
        hint=_hint(contract.name) if failure.stage == "eager" else START_HINT,
        occurrences=1 + len(observation.broken),
        source=failure.source,
        details=failure_details(failure) + also,
    )


def _broken(contract: ModelContract, observation: ModelObservation) -> Finding:
    first = observation.broken[0]
    number = len(observation.broken)
    at = f" at {source_place(first.source)}" if first.source else ""
    further = f" (and at {count(number - 1, 'further input')})" if number > 1 else ""
    return Finding(
        rule=RULE.name,
        severity="violation",
        model=contract.name,
        case=first.case,
        message=(
            f"{place(contract.name, case=first.case)}: eager breaks the contract{at}{further}: "
            f"{first_line(first.message)}"
        ),
        hint=_hint(contract.name),
        occurrences=number,
        source=first.source,
        details=paragraph(first.message)[1:] + other_cases([promise.case for promise in observation.broken]),
    )


def _hint(model: str) -> str:
    return (
        f"Fix the model, or declare what it really takes and returns: narrow `models.{model}.dims` or the inputs' "
        "`range` and `values` to what eager computes, and write `outputs` as eager returns them."
    )


START_HINT = "Call the factory and one forward in the project's interpreter; the details have the traceback."

RULE = Rule(
    name="contract-broken",
    severity="violation",
    summary="The eager model raises inside its declared ranges or returns other outputs than declared.",
    check=check,
)
