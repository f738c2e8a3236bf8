"""An output has another element type than eager's."""

from __future__ import annotations

from collections.abc import Iterator

from export_gate.rules.base import Finding, Rule
from export_gate.rules.cases import differing_outputs
from export_gate.rules.measure import Measured


def check(measured: Measured) -> Iterator[Finding]:
    """One finding for each output of each target."""
    for differing in differing_outputs(measured, "dtype"):
        worst = differing.worst.comparison
        difference = f"expected dtype {worst.expected_dtype}, got {worst.actual_dtype}"
        yield differing.finding(RULE.name, difference, _hint(worst.expected_dtype))


def _hint(expected: str) -> str:
    return (
        f"Fix the type at the end of forward with `.to(torch.{expected})`: type promotion with Python numbers, a "
        "Python number returned as output and integer reductions are converted differently."
    )


RULE = Rule(
    name="dtype-mismatch",
    severity="violation",
    summary="An output has another dtype than eager's.",
    stage="compare",
    waivable=("target", "output", "case"),
    check=check,
)
