"""What a stranger wrote never becomes a command of the job that reports on it: the real runner is the witness."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from github_server import GitHubServer
from harness.repositories import commit, git
from runner import HEAD, REPOSITORY, Ended, Runner, pull_request

pytestmark = pytest.mark.slow

COMMANDS = ("::error::owned", "::set-output name=owned::x", "::add-path::owned", "##[error]owned")
"""Those that act takes, which wants them at the very start of a line."""
HOSTILE = "\n".join(("x", *COMMANDS, "x\r" + "\r".join(COMMANDS), ""))
NAME = "x\n::error::owned\n##[error]owned\n"
"""A name that a folder can have."""
FORK = "stranger/shop"
CHECKOUT = {"uses": "actions/checkout@v6", "with": {"persist-credentials": False}}


@pytest.fixture
def github() -> Iterator[GitHubServer]:
    """GitHub's API, with the fork's pull request in it."""
    with GitHubServer() as server:
        server.pulls = [{**pull_request(repository=FORK)["pull_request"]}]
        yield server


@pytest.fixture
def runner(tmp_path: Path, checkout: Path, clean_environment: dict[str, str], github: GitHubServer) -> Runner:
    """A repository with the second stage for forks, as it is to be copied."""
    folder = tmp_path / "shop"
    workflows = folder / ".github" / "workflows"
    workflows.mkdir(parents=True)
    source = checkout / "examples" / "workflows" / "fork-comment.yml"
    (workflows / "fork-comment.yml").write_text(source.read_text())
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "remote", "add", "origin", f"https://github.com/{REPOSITORY}")
    commit(folder)
    return Runner(folder=folder, work=tmp_path, checkout=checkout, environment=clean_environment, api_url=github.url)


def completed() -> dict[str, Any]:
    """The event that a fork's run has ended."""
    run = {"id": 101, "run_attempt": 1, "event": "pull_request", "head_sha": HEAD, "head_branch": "feature"}
    run |= {"conclusion": "failure", "head_repository": {"full_name": FORK}}
    return {"action": "completed", "workflow_run": run, "repository": pull_request()["repository"]}


def upload(runner: Runner, files: dict[str, str]) -> None:
    """What the fork's run stored for the second stage."""
    for name, text in files.items():
        path = runner.work / "artifacts" / "export-gate-results" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def executed(ended: Ended, job: str) -> list[str]:
    """The fork's commands that the runner obeyed: it keeps the line as `raw` next to the command's name."""
    mine = [line for line in ended.lines if line.get("jobID") == job and line.get("command")]
    return [line["command"] for line in mine if "owned" in f"{line.get('raw')} {line.get('name')}"]


def shell(*commands: str) -> dict[str, Any]:
    """A step that goes on whatever a command ends with."""
    return {"shell": "bash", "run": "\n".join(f"{command} || true" for command in commands)}


@pytest.mark.slow
def test_results_of_a_fork_order_nothing(runner: Runner, github: GitHubServer):
    """With fork-comment.yml, results of a hostile version in a folder with a hostile name are inert text."""
    upload(runner, {f"{NAME}/results.json": json.dumps({"schema_version": 99, "tool_version": HOSTILE})})
    done = runner.run("workflow_run", completed(), "fork-comment.yml")
    assert done.code == 0, done.text
    assert executed(done, "comment") == []
    assert done.outputs("comment")["verdict"] == "broken"
    (body,) = github.bodies()
    assert "schema version 99" in body


@pytest.mark.slow
def test_commands_order_nothing_where_the_same_text_does(runner: Runner):
    """The runner obeys the text itself, but not when one of our commands prints it."""
    results = json.dumps({"schema_version": 99, "tool_version": HOSTILE})
    files = {
        "plain": HOSTILE,
        "results.json": results,
        f"{NAME}/results.json": results,
        "kit/kit.json": json.dumps({"schema_version": 99, "tool_version": HOSTILE, "exports": []}),
        "bad.yml": f"version: {json.dumps(HOSTILE)}\n",
    }
    for name, text in files.items():
        path = runner.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    gate = f"{sys.executable} -I -X utf8 {runner.checkout}/action/gate.py"
    quoted = shlex.quote(f"{NAME}/results.json")
    ours = shell(
        *(f"{gate} {command} {file}" for command in ("report", "lock -c plain") for file in ("results.json", quoted)),
        f"{gate} merge -o out.json {quoted} results.json",
        f"{gate} judge --atol 1 {quoted}",
        f"{gate} publish --comment never --no-annotations {quoted}",
        f"{gate} replay kit",
        f"{gate} validate bad.yml {quoted}",
        f"{gate} run -c bad.yml",
        f"{gate} report --format {quoted} results.json",
    )
    jobs = {"plain": shell("cat plain"), "ours": ours}
    steps = {name: {"runs-on": "ubuntu-latest", "steps": [CHECKOUT, step]} for name, step in jobs.items()}
    workflow = {"on": "push", "jobs": steps}
    (runner.folder / ".github" / "workflows" / "texts.yml").write_text(yaml.safe_dump(workflow))
    commit(runner.folder)
    done = runner.run("push", {"repository": pull_request()["repository"]}, "texts.yml")
    assert done.code == 0, done.text
    assert set(executed(done, "plain")) >= {"error", "set-output", "add-path"}
    assert executed(done, "ours") == []
    assert done.text.count("schema version 99") >= 6
