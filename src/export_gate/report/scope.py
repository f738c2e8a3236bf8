"""Say in one line what works beside a violation: how much of the model it leaves intact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from export_gate.report.record import Row
from export_gate.report.results import Results
from export_gate.rules import NAMED
from export_gate.rules.base import Finding
from export_gate.rules.wording import listing
from export_gate.wall.words import count

Scopes = Mapping[str, tuple[str, str]]
"""Model -> what is fine beside a failed target, and beside a failed export."""


def find_scopes(results: Results, rows: Sequence[Row]) -> Scopes:
    """What works of each model."""
    inputs = {seen.model: len(seen.controls.inputs) for seen in results.run.models if seen.controls is not None}
    eager_fails = {f.model for f in results.findings if f.severity == "violation" and f.rule == "contract-broken"}
    return {
        row.model: (_agreeing(row), "" if row.model in eager_fails else _eager(inputs.get(row.model, 0)))
        for row in rows
    }


def scope_words(finding: Finding, scopes: Scopes) -> str:
    """`exported-program and pt2 agree with eager at every control input`; empty if that is not useful."""
    if finding.severity != "violation" or finding.waiver is not None:
        return ""
    beside_target, beside_export = scopes.get(finding.model, ("", ""))
    rule = NAMED.get(finding.rule)
    is_export = finding.target is None and rule is not None and rule.stage == "export"
    return beside_export if is_export else beside_target if finding.target else ""


def _agreeing(row: Row) -> str:
    fine = [
        cell for cell in row.cells if cell.state in ("ok", "warned") and any(each.compared for each in cell.ladders)
    ]
    if not fine:
        return ""
    # No number: targets are compared at different numbers of inputs, and the failed one's stands beside it.
    verb = "agrees" if len(fine) == 1 else "agree"
    return f"{listing([cell.target for cell in fine])} {verb} with eager at every control input"


def _eager(inputs: int) -> str:
    where = f"eager runs at all {count(inputs, 'control input')}"
    return f"{where}; nothing was exported, so nothing was compared" if inputs else ""
