"""An output has another element type than eager's."""

from __future__ import annotations

from collections.abc import Iterator

from export_gate.contract import ModelContract
from export_gate.observation import ModelObservation
from export_gate.rules.base import Finding, Rule
from export_gate.rules.cases import other_cases, target_faults
from export_gate.rules.wording import place


def check(contract: ModelContract, observation: ModelObservation) -> Iterator[Finding]:
    """One finding for each output of each target."""
    for target, output, faults in target_faults(contract, observation, "dtype"):
        worst = faults[0].comparison
        where = place(contract.name, target, output, faults[0].case)
        yield Finding(
            rule=RULE.name,
            severity="violation",
            model=contract.name,
            target=target,
            output=output,
            case=faults[0].case,
            message=f"{where}: expected dtype {worst.expected_dtype}, got {worst.actual_dtype}",
            hint=_hint(worst.expected_dtype),
            occurrences=len(faults),
            details=other_cases([fault.case for fault in faults]),
        )


def _hint(expected: str) -> str:
    return (
        f"Fix the type at the end of forward with `.to(torch.{expected})`: type promotion with Python numbers, a "
        "Python number returned as output and integer reductions are converted differently."
    )


RULE = Rule(
    name="dtype-mismatch",
    severity="violation",
    summary="An output has another dtype than eager's.",
    check=check,
)
