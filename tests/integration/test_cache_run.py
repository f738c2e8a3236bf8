"""Real runs with a cache: everything is verified once, then only what changed."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from harness.gate import Done, gate, surroundings
from harness.repositories import commit, git

pytestmark = pytest.mark.slow(seconds=15)

CONFIG = f"""
version: 1
python: {sys.executable}
models:
  first: &model
    factory: first:make
    inputs: {{input: {{dtype: float32, shape: [3, 2], range: [0, 1]}}}}
    controls: {{limit: 2}}
    targets: {{pt2: {{}}}}
  second: {{<<: *model, factory: "second:make"}}
  clock: {{<<: *model, factory: "clock:make"}}
"""
MODEL = "from common import layer\n\ndef make():\n    return layer(2)\n"
COMMON = "import torch\n\ndef layer(size):\n    return torch.nn.Linear(2, size).eval()\n"
CLOCK = f"import time\n\n{MODEL.replace('return', 'time.time(); return')}"


class Project:
    """A folder with three models and a cache."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name, text in {
            "export-gate.yml": CONFIG,
            "first.py": MODEL,
            "second.py": MODEL,
            "clock.py": CLOCK,
            "common.py": COMMON,
        }.items():
            (folder / name).write_text(text)

    def run(self, *arguments: str) -> Done:
        """A run with the cache, as a user's."""
        return self.gate("run", *arguments)

    def gate(self, *arguments: str) -> Done:
        """Any command with the cache."""
        given = surroundings({"EXPORT_GATE_CACHE": str(self.folder.parent / "cache")})
        given.pop("EXPORT_GATE_RUN_NO_CACHE")
        return gate(self.folder, *arguments, environment=given)

    def results(self) -> dict[str, Any]:
        """The observations of each model, with its artifacts' bytes."""
        report = self.folder / ".export-gate"
        run = json.loads((report / "results.json").read_text())["run"]
        for model in run["models"]:
            for target in model["targets"]:
                target["bytes"] = (report / target["artifact"]["path"]).read_bytes()
        return {model["model"]: model for model in run["models"]}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """One project for all tests of this file, in order."""
    folder = tmp_path_factory.mktemp("cached") / "project"
    folder.mkdir()
    return Project(folder)


@pytest.fixture(scope="module")
def runs(project: Project) -> dict[str, tuple[Done, dict[str, Any]]]:
    """The same project verified, unchanged, with one model changed."""
    found = {}
    for name in ("first run", "nothing changed", "one changed"):
        if name == "one changed":
            (project.folder / "second.py").write_text(MODEL.replace("(2)", "(3)"))
        models = () if name == "first run" else ("first", "second")
        found[name] = project.run(*models), project.results()
    return found


@pytest.mark.slow
def test_the_first_run_verifies_everything_and_says_what_it_will_not_reuse(runs: dict[str, Any]):
    """Every model is observed; one that reads the clock will be again."""
    done, results = runs["first run"]
    assert done.returncode == 0, done.stdout + done.stderr
    assert "note: clock will be verified again next time: it reads the clock (clock.py:" in done.stderr
    assert "note: first" not in done.stderr
    assert {name: model["reused"] for name, model in results.items()} == dict.fromkeys(("first", "second", "clock"))


def test_an_unchanged_model_is_not_run_and_ships_what_was_verified(runs: dict[str, Any]):
    """Nothing is announced, and results and artifacts are those of the first run."""
    _, before = runs["first run"]
    done, after = runs["nothing changed"]
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("unchanged, verified 20") == 2
    assert "with" not in done.stderr
    for name in ("first", "second"):
        day = after[name]["reused"]["day"]
        assert after[name] == before[name] | {"reused": {"commit": "", "day": day}}


def test_only_a_changed_model_runs(runs: dict[str, Any], project: Project):
    """The other one is still unchanged; every report says so."""
    done, results = runs["one changed"]
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("unchanged, verified 20") == 1
    assert "export-gate 0.1.0: 1 model with" in done.stderr
    assert results["second"]["reused"] is None
    assert results["second"]["parameters"] == 9
    for name in ("report.md", "report.html"):
        assert (project.folder / ".export-gate" / name).read_text().count("unchanged, verified 20") == 1


@pytest.mark.slow
def test_the_cache_can_be_left_out(runs: dict[str, Any], project: Project):
    """`--no-cache` verifies what is unchanged."""
    done = project.run("first", "--no-cache")
    assert done.returncode == 0, done.stdout + done.stderr
    assert project.results()["first"]["reused"] is None
    assert "EXPORT_GATE_CACHE" not in os.environ


@pytest.mark.slow
def test_another_commit_of_a_submodule_is_another_model(tmp_path: Path):
    """Its files are not in the repository's own list; `plan` says so as well, and the commit before is known again."""
    library, folder = tmp_path / "library", tmp_path / "project"
    for made in (library, folder):
        made.mkdir()
        git(made, "init", "--quiet", "--initial-branch=main")
    commits = []
    for size in ("1", "1 + 1"):  # of other lengths: Python compares time and size of a source with its bytecode
        (library / "common.py").write_text(COMMON.replace("Linear(2, size)", f"Linear(2, {size})"))
        commits.append(commit(library))
    project = Project(folder)
    (folder / "common.py").unlink()
    git(folder, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "parts")
    (folder / "export-gate.yml").write_text(CONFIG.replace("models:", "pythonpath: [., parts]\nmodels:"))
    commit(folder)
    done = project.run("first")
    assert done.returncode == 0, done.stdout + done.stderr
    # The first run's report is no part of what a verdict depends on.
    assert project.gate("plan", "--changed-since", "HEAD", "first").stdout.startswith("first: unchanged since ")

    git(folder / "parts", "checkout", "--quiet", commits[0])
    planned = project.gate("plan", "--changed-since", "HEAD", "first").stdout
    assert planned.startswith("first: runs: ")
    assert "parts/common.py changed since HEAD" in planned
    assert project.run("first").returncode == 0
    assert project.results()["first"]["reused"] is None
    assert project.results()["first"]["parameters"] == 3


def test_a_plan_without_a_cache_runs_everything(project: Project, tmp_path: Path):
    """On a CI runner only the workflow knows whose the cache is."""
    git(tmp_path, "init", "--quiet")
    (tmp_path / "export-gate.yml").write_text(CONFIG)
    commit(tmp_path)
    done = gate(tmp_path, "plan", "--changed-since", "HEAD", environment={**surroundings({}), "CI": "true"})
    names = ("first", "second", "clock")
    assert done.stdout == "".join(f"{name}: runs: there is no cache\n" for name in names)
