"""Events that start the check."""

from __future__ import annotations

import pytest

from export_gate.loosening.record import Effect
from export_gate.loosening.steps import GateStep, Workflow
from export_gate.loosening.workflow import compare_workflows
from export_gate.run.workflow_file import read_workflows

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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("permissions: {statuses: write}\njobs: {a: {}}", ["also statuses: write, to give checks of any name"]),
        (
            "jobs: {a: {permissions: {checks: write, contents: read}}}",
            ["also checks: write, to give checks of any name"],
        ),
        ("permissions: write-all\njobs: {a: {}}", ["also checks, statuses: write, to give checks of any name"]),
        ("permissions: {checks: read, pull-requests: write}\njobs: {a: {}}", []),
        ("permissions: read-all\njobs: {a: {}}", []),
        ("jobs: {a: {}}", []),
    ],
)
def test_a_token_that_gives_checks_is_said(text: str, said: list[str]):
    """It can give one with the name of the gate's, and so does not need the gate to pass."""
    gate = Workflow(steps=(STEP,), checks=("gate",))
    after = read_workflows({"new.yml": text}, "acme/export-gate")["new.yml"]
    assert after is not None

    found = compare_workflows({"ci.yml": gate}, {"ci.yml": gate, "new.yml": after})

    assert [each.text for each in found] == [f"new.yml: permissions {what}" for what in said]
    assert compare_workflows({"ci.yml": gate, "new.yml": after}, {"ci.yml": gate, "new.yml": after}) == ()
    assert compare_workflows({}, {"new.yml": after}) == ()
