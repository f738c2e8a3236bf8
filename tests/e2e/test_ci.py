"""This repository's own CI, under the real runner."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from harness.repositories import commit, git
from runner import REPOSITORY, Runner, pull_request

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="the runner is a POSIX program")]

ROOT = Path(__file__).parents[2]
NEXT_CENTURY = 4102444800


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """This checkout as a repository with its environment in place, so that `make` has nothing to install."""
    folder = tmp_path / "clone"
    for name in filter(None, git(ROOT, "ls-files", "--cached", "--others", "--exclude-standard", "-z").split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "remote", "add", "origin", f"https://github.com/{REPOSITORY}")
    commit(folder)
    environment = tmp_path / "environment"
    environment.mkdir()
    (environment / "bin").symlink_to(Path(sys.executable).parent)
    (environment / "installed").touch()
    os.utime(environment / "installed", (NEXT_CENTURY, NEXT_CENTURY))
    (folder / ".venv").symlink_to(environment)
    return folder


def ci(clone: Path, part: str) -> tuple[int, str]:
    """The exit code and the output of CI's Linux job, with a part of the suite."""
    runner = Runner(folder=clone, work=clone.parent, checkout=ROOT, environment={}, api_url="http://127.0.0.1:9")
    done = runner.run("pull_request", pull_request(), "ci.yml", job="suite", ARGS=part, OMP_NUM_THREADS="1")
    return done.code, done.text


@pytest.mark.nightly  # every job of CI is one that passes, and this one lints all over again
def test_linux_job_lints_and_runs_the_suite(clone: Path):
    """The job of ci.yml passes on this checkout, with every linter and one folder of tests."""
    code, text = ci(clone, "tests/unit/wall -n 1")
    assert code == 0, text
    for line in ("All checks passed!", "Success: no issues found", "0 broken.", " passed"):
        assert line in text, text


@pytest.mark.slow
def test_linux_job_fails_with_a_linter(clone: Path):
    """One unused import is enough for the job to fail, before any test runs."""
    (clone / "src" / "export_gate" / "unused.py").write_text('"""Docs."""\n\nimport os\n', encoding="utf-8")
    commit(clone)
    code, text = ci(clone, "tests/unit/wall -n 1")
    assert code == 1, text
    assert "F401" in text
    assert " passed" not in text
