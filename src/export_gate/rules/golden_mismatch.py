"""Eager does not reproduce the outputs that were recorded as correct."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from export_gate.rules.base import Finding, Rule
from export_gate.rules.cases import faults_by_output, other_cases
from export_gate.rules.measure import Measured, Measurement
from export_gate.rules.numbers import describe_fault, measured_and_allowed, needed_atol, spread
from export_gate.rules.structure_mismatch import describe_structure
from export_gate.rules.wording import first_line
from export_gate.wall.contract import ModelContract
from export_gate.wall.observation import CaseResult
from export_gate.wall.words import rounded


def check(measured: Measured) -> Iterator[Finding]:
    """One finding for goldens that could not be compared leaf by leaf, one for each output that differs."""
    contract = measured.contract
    if measured.odd_goldens:
        yield _unpaired(contract, measured.odd_goldens)
    for output, faults in faults_by_output(measured.goldens):
        worst = faults[0]
        error, allowed = measured_and_allowed(worst)
        yield RULE.finding(
            contract.name,
            f"eager differs from the golden: {describe_fault(worst)}",
            hint=_hint(contract.name, faults),
            output=output,
            case=worst.case,
            measured=error,
            allowed=allowed,
            occurrences=len(faults),
            key="controls.golden",
            details=spread(worst.comparison, "golden", "eager") + other_cases([fault.case for fault in faults]),
        )


def _unpaired(contract: ModelContract, cases: Sequence[CaseResult]) -> Finding:
    first = cases[0]
    what = describe_structure(first.structure) if first.structure else "not compared"
    if first.failure:
        what = f"{first.failure.type}: {first_line(first.failure.message)}"
    return RULE.finding(
        contract.name,
        f"eager cannot be compared with the golden: {what}",
        hint=(
            "Make the file's outputs match eager's: map names under `outputs` of the source in "
            f"`models.{contract.name}.controls.golden`, or record the golden again if the model's outputs changed on "
            "purpose."
        ),
        case=first.case,
        occurrences=len(cases),
        key="controls.golden",
        details=other_cases([case.case for case in cases]),
    )


def _hint(model: str, faults: Sequence[Measurement]) -> str:
    causes = (
        "The model, its weights or a dependency changed its function, or the golden comes from other code. If the "
        "change is intended, record the golden again and review its diff."
    )
    atol = needed_atol(faults) if all(fault.fault == "value" for fault in faults) else None
    if atol is None:
        return causes
    return (
        f"{causes} To accept a difference between machines, set `tolerance.atol` of the source in "
        f"`models.{model}.controls.golden` to {rounded(atol)}."
    )


RULE = Rule(
    name="golden-mismatch",
    severity="violation",
    summary="Eager does not reproduce a golden output.",
    stage="eager",
    waivable=("output", "case"),
    owner="model",
    check=check,
)
