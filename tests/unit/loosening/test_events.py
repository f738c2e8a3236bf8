"""Events that start the check."""

from __future__ import annotations

from dataclasses import replace

import pytest

from export_gate.loosening.record import Effect
from export_gate.loosening.steps import GateStep, Workflow
from export_gate.loosening.workflow import compare_workflows
from export_gate.run.workflow_file import read_workflows
from export_gate.run.workflow_job import Known

KNOWN = Known(repository="acme/export-gate")
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
    after = read_workflows({"new.yml": text}, KNOWN)["new.yml"]
    assert after is not None

    found = compare_workflows({"ci.yml": gate}, {"ci.yml": gate, "new.yml": after})

    assert [each.text for each in found] == [f"new.yml: permissions {what}" for what in said]
    assert compare_workflows({"ci.yml": gate, "new.yml": after}, {"ci.yml": gate, "new.yml": after}) == ()
    assert compare_workflows({}, {"new.yml": after}) == ()


def steps(permissions: str, script: str) -> dict[str, Workflow]:
    """A workflow whose job runs the gate."""
    text = f"jobs: {{gate: {{{permissions} steps: [{{run: {script}}}]}}}}"
    found = read_workflows({"ci.yml": text}, KNOWN)["ci.yml"]
    assert found is not None
    return {"ci.yml": found}


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        ("permissions: {pull-requests: write},", "permissions: {},", "write -> none"),
        ("permissions: write-all,", "permissions: {contents: write},", "write -> none"),
        ("", "permissions: read-all,", "default -> none"),
        ("permissions: {},", "", None),
        ("permissions: {pull-requests: write},", "permissions: {pull-requests: write, issues: read},", None),
    ],
)
def test_a_job_that_cannot_comment_any_more_is_said(before: str, after: str, what: str | None):
    """Then the pull request keeps the comment of an earlier run, or has none."""
    old, new = (steps(each, "export-gate run") for each in (before, after))

    said = [each.text for each in compare_workflows(old, new) if each.effect == "loosened"]

    assert said == ([f"ci.yml, job gate: job pull-requests {what}"] if what else [])


def test_a_line_that_is_repeated_is_another_script():
    """The second `cd` leads elsewhere; the gate once more does not."""
    old, twice, again = (
        steps("", script)
        for script in (
            r'"cd nets\nexport-gate run"',
            r'"cd nets\ncd nets\nexport-gate run"',
            r'"cd nets\nexport-gate run\nexport-gate run"',
        )
    )
    (said,) = compare_workflows(old, twice)

    assert said.text == (
        "ci.yml, job gate: steps in another order or number: [cd nets, the gate] -> [cd nets, cd nets, the gate]"
    )
    assert "steps" not in " ".join(each.text for each in compare_workflows(old, again))


@pytest.mark.parametrize(
    ("uses", "has_cache", "is_said"),
    [
        ("actions/cache/save@v5", True, True),
        ("actions/cache@v5", True, True),
        ("actions/cache/restore@v5", True, False),
        ("actions/cache/save@v5", False, False),
    ],
)
def test_a_cache_that_may_be_taken_for_verdicts_is_said(uses: str, has_cache: bool, is_said: bool):
    """GitHub searches the caches of the pull request before those of the default branch."""
    gate = Workflow(steps=(replace(STEP, inputs={"cache": "kept"} if has_cache else {}),))
    after = read_workflows({"x.yml": f"jobs: {{a: {{steps: [{{uses: {uses}}}]}}}}"}, KNOWN)["x.yml"]
    assert after is not None

    found = compare_workflows({"ci.yml": gate}, {"ci.yml": gate, "x.yml": after})

    assert [each.text for each in found] == (
        [f'x.yml: also saves a cache, which may be taken for kept verdicts: a: {{"uses": "{uses[:-3]}"}}']
        if is_said
        else []
    )


@pytest.mark.parametrize("old", ["jobs: {a: {if: push, ", "actions/cache/restore@v5"])
def test_a_cache_that_is_saved_from_now_on_is_said(old: str):
    """Whatever kept the job from it: its condition, or the action of the repository that it uses."""
    text = {
        "x.yml": "jobs: {a: {if: push, steps: [{uses: ./own}, {uses: actions/cache@v5}]}}",
        "own/action.yml": "runs: {steps: [{uses: actions/cache/restore@v5}]}",
    }
    now = {"jobs: {a: {if: push, ": "jobs: {a: {", "actions/cache/restore@v5": "actions/cache/save@v5"}[old]
    before, after = (
        {name: each for name, each in read_workflows(files, KNOWN).items() if each}
        for files in (text, {name: each.replace(old, now) for name, each in text.items()})
    )
    gate = {"ci.yml": Workflow(steps=(replace(STEP, inputs={"cache": "kept"}),))}

    (said,) = compare_workflows({**before, **gate}, {**after, **gate})

    assert said.text.startswith("x.yml: also saves a cache, which may be taken for kept verdicts: a")


SETUP = ".github/actions/setup/action.yml"
OUTER = ".github/actions/outer/action.yml"
FILES = {
    "ci.yml": "jobs: {gate: {steps: [{uses: ./.github/actions/outer}, {uses: acme/export-gate@v1}]}}",
    OUTER: "runs: {using: composite, steps: [{uses: ./.github/actions/setup}]}",
    SETUP: "name: a\nruns: {using: composite, steps: [{run: echo}, {uses: acme/tool@v1}]}",
}


def bare(line: str) -> str:
    """A step's line without its key."""
    return line.partition(": ")[2]


@pytest.mark.parametrize(
    ("old", "new", "is_said"),
    [
        ("run: echo", "run: echo lax", True),
        ("uses: acme/tool@v1", "uses: evil/tool@v1", True),
        ("uses: acme/tool@v1", "uses: acme/tool@v2", False),
        ("name: a", "name: b", False),
    ],
)
def test_what_an_action_of_the_repository_runs_beside_the_gate_is_compared(old: str, new: str, is_said: bool):
    """It can set the gate's variables like a step of the job itself."""
    before, after = (
        {name: each for name, each in read_workflows(files, KNOWN).items() if each}
        for files in (FILES, {**FILES, SETUP: FILES[SETUP].replace(old, new)})
    )

    found = [each.text for each in compare_workflows(before, after) if each.effect == "loosened"]

    assert found == ([f"ci.yml, job gate: steps {SETUP}: {bare(old)} -> {SETUP}: {bare(new)}"] if is_said else [])


def test_actions_that_use_each_other_have_an_end():
    """GitHub refuses them; a change must not make the gate wait."""
    files = {**FILES, SETUP: "runs: {steps: [{uses: ./.github/actions/outer}, {uses: ./.github/actions/setup}]}"}
    assert all(read_workflows(files, KNOWN).values())
