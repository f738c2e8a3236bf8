"""Other versions of actions: releases are named, and what anybody may have made is said."""

from __future__ import annotations

import pytest

from export_gate.loosening.record import Effect
from export_gate.loosening.steps import HERE, GateStep, Workflow
from export_gate.loosening.workflow import compare_workflows
from export_gate.run.workflow_job import COMMAND


def effects(version: str) -> list[Effect]:
    """Those of another version of the gate's action, and of one beside it."""
    before, after = (
        Workflow(
            steps=(GateStep(part="", action="acme/export-gate", version=v, around=(HERE, f"actions/checkout@{v}")),)
        )
        for v in ("v1", version)
    )
    return [each.effect for each in compare_workflows({"ci.yml": before}, {"ci.yml": after})]


@pytest.mark.parametrize("version", ["v2", "2.0.1", "v2.0.0-rc.1", "1.0rc1", "release/v2", "0123abcdef" * 4])
def test_a_release_is_named(version: str):
    """An upgrade, as a bot proposes it, loosens nothing."""
    assert effects(version) == ["changed", "changed"]


@pytest.mark.parametrize("version", ["refs/pull/3/merge", "pull/3/head", "main", "lax", "refs/heads/v2", "v2lax"])
def test_what_is_no_release_is_said(version: str):
    """Anybody can open a pull request against an action, and `uses:` takes the code of one."""
    assert effects(version) == ["loosened", "loosened"]


@pytest.mark.parametrize(
    "line",
    ["uvx export-gate@0.1.0 run", "pipx run export-gate==0.1.0 run", "export-gate.exe run", "x export-gate[a] run"],
)
def test_a_command_with_a_version_is_known(line: str):
    """However it is written, a line that runs the gate is compared."""
    assert COMMAND.search(line)
    assert not COMMAND.search("pip install export-gate==0.1.0")
