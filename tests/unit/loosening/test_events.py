"""Events that start the check."""

from __future__ import annotations

import pytest

from export_gate.loosening.record import Effect
from export_gate.loosening.steps import GateStep, Workflow
from export_gate.loosening.workflow import compare_workflows

STEP = GateStep(part="", action="acme/export-gate", version="v1")


@pytest.mark.parametrize(
    ("filters", "effect"),
    [
        ('{"types": ["opened", "synchronize", "reopened", "edited"]}', "tightened"),
        ('{"types": ["synchronize", "opened", "reopened"]}', "tightened"),
        ('{"types": ["opened", "edited"]}', "loosened"),
        ('{"types": ["opened", "synchronize", "reopened"], "paths": ["a"]}', "loosened"),
        ('{"types": "opened"}', "loosened"),
        ('["edited"]', "loosened"),
    ],
)
def test_another_event_of_pull_requests_loosens_nothing(filters: str, effect: Effect):
    """With `edited`, a pull request that gets another base is checked again; without the usual ones, it is not."""
    before, after = (Workflow(steps=(STEP,), triggers={"pull_request": each}) for each in ("", filters))

    found = compare_workflows({"ci.yml": before}, {"ci.yml": after})

    assert [each.effect for each in found] == [effect]
