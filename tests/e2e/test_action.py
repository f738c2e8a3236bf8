"""The action in real workflow runs: a repository with a model, the real runner, GitHub's API on this machine."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from github_server import GitHubServer
from repositories import commit, git
from runner import HEAD, REPOSITORY, TOKEN, Runner, pull_request

pytestmark = pytest.mark.slow

CONFIG = """
version: 1
models:
  head: &model
    factory: model:make
    inputs: {input: {dtype: float32, shape: [3, 2], range: [0, 1]}}
    controls: {limit: 2}
    targets: {exported-program: {}}
"""
GOOD = """
import torch

def make():
    return torch.nn.Linear(2, 2).eval()
"""
BROKEN = """
import torch

class Branches(torch.nn.Module):
    def forward(self, input):
        return input + 1 if input.sum() > 1 else input

def make():
    return Branches().eval()
"""
SPY = """
import json, os, torch
from pathlib import Path

def ancestors():
    pid = os.getpid()
    while pid > 1:
        yield Path(f"/proc/{pid}/environ").read_bytes().decode("utf-8", "replace").split("\\0")
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

def make():
    Path(SEEN).write_text(json.dumps(list(ancestors())))
    return torch.nn.Linear(2, 2).eval()
"""
THIEF = """
import os, torch
from pathlib import Path

def commands():
    pid = os.getpid()
    while pid > 1:
        for name in Path(f"/proc/{pid}/environ").read_bytes().decode("utf-8", "replace").split("\\0"):
            if name.startswith("GITHUB_ENV="):
                return Path(name.partition("=")[2])
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

def make():
    script = Path(STOLEN).with_name("steal.sh")
    script.write_text(f'env >> "{STOLEN}"; echo === >> "{STOLEN}"')
    with commands().open("a") as file:
        file.write(f"BASH_ENV={script}\\n")
    return torch.nn.Linear(2, 2).eval()
"""
CHECKOUT = {"uses": "actions/checkout@v6", "with": {"persist-credentials": False}}


def gate(**inputs: str) -> dict[str, Any]:
    """A step with the action."""
    return {"id": "gate", "uses": "acme/export-gate@v1", "with": {"python": sys.executable, **inputs}}


def job(*steps: dict[str, Any], **keys: Any) -> dict[str, Any]:
    """A job of these steps."""
    return {"runs-on": "ubuntu-latest", **keys, "steps": list(steps)}


ONE_JOB = {"gate": job(CHECKOUT, gate())}


@pytest.fixture
def github() -> Iterator[GitHubServer]:
    """GitHub's API, with nothing in it."""
    with GitHubServer() as server:
        yield server


@pytest.fixture
def runner(tmp_path: Path, checkout: Path, clean_environment: dict[str, str], github: GitHubServer) -> Runner:
    """A repository with a good model, and what runs its workflows."""
    folder = tmp_path / "shop"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "remote", "add", "origin", f"https://github.com/{REPOSITORY}")
    made = Runner(folder=folder, work=tmp_path, checkout=checkout, environment=clean_environment, api_url=github.url)
    write(made, model=GOOD, jobs=ONE_JOB)
    return made


def write(runner: Runner, *, model: str | None = None, jobs: dict[str, Any] | None = None, config: str = CONFIG):
    """Commit the repository's files."""
    (runner.folder / "export-gate.yml").write_text(config)
    if model is not None:
        (runner.folder / "model.py").write_text(model)
    if jobs is not None:
        events = ["pull_request", "pull_request_target", "merge_group", "push", "workflow_run"]
        (runner.folder / ".github/workflows").mkdir(parents=True, exist_ok=True)
        (runner.folder / ".github/workflows/gate.yml").write_text(yaml.safe_dump({"on": events, "jobs": jobs}))
    commit(runner.folder)


def test_comment_turns_green_after_red(runner: Runner, github: GitHubServer):
    """A violation fails the job and writes a comment; when it is fixed, the same comment says so and the job passes."""
    write(runner, model=BROKEN)
    red = runner.run("pull_request", pull_request(), "gate.yml")
    assert red.code == 1, red.text
    assert red.outputs("gate")["verdict"] == "violations"
    assert red.outputs("gate")["violations"] == "1"
    (body,) = github.bodies()
    assert "❌ export-gate" in body
    assert "export-failed" in body

    seen = runner.work / "seen.json"
    write(runner, model=f"SEEN = {str(seen)!r}\n{SPY}")
    green = runner.run("pull_request", pull_request(), "gate.yml")
    assert green.code == 0, green.text
    outputs = green.outputs("gate")
    assert outputs["verdict"] == "verified"
    assert (outputs["violations"], outputs["warnings"]) == ("0", "0")
    assert outputs["report-path"].endswith("/.export-gate/report.md")
    assert outputs["results-path"].endswith("/.export-gate/results.json")
    (body,) = github.bodies()
    assert "✅ export-gate: 1 of 1 model verified" in body
    assert HEAD[:10] in body
    assert outputs["comment-url"] == next(iter(github.comments.values()))["html_url"]

    environments = json.loads(seen.read_text())
    steps = [names for names in environments if any(name.startswith("GITHUB_STEP_SUMMARY=") for name in names)]
    assert steps, "the model saw no process of the step"
    assert not [name for names in environments for name in names if TOKEN in name]
    assert not [name for name in environments[0] if name.startswith(("GITHUB_", "RUNNER_", "ACTIONS_"))]
