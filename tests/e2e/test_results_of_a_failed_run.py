"""The action's scripts on their own: results that are better than the run that wrote them never pass, in any job."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import report_samples as samples

from export_gate.report.results import write_results

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
OUTPUT = re.compile(r"^([\w-]+)<<[0-9a-f]{32}\n(.*)\n[0-9a-f]{32}$", re.MULTILINE)


def script(folder: Path, name: str, **variables: str) -> tuple[int, dict[str, str], str]:
    """Exit code, outputs and log of a script of the action, run in a folder."""
    output = folder / "output"
    output.write_text("")
    environment = {
        "PATH": os.environ["PATH"],
        "RUNNER_TEMP": str(folder),
        "GITHUB_OUTPUT": str(output),
        "PYTHON": sys.executable,
        **variables,
    }
    done = subprocess.run(
        ["/bin/bash", str(ROOT / "action" / f"{name}.sh")],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, dict(OUTPUT.findall(output.read_text())), done.stdout


def verified(folder: Path, code: int) -> Path:
    """The folder of a run that wrote green results and then ended with that code."""
    (folder / "export-gate.yml").touch()
    (folder / "ready").mkdir(parents=True)
    write_results(samples.green(), folder / "ready" / "results.json")
    gate = folder / "gate"
    gate.write_text(f"#!/bin/sh\nmkdir -p .export-gate\ncp ready/results.json .export-gate/\nexit {code}\n")
    gate.chmod(0o755)
    keys = ("CONFIG", "MODELS", "TARGETS", "PROJECT_PYTHON", "SHARD", "BASE_SHA", "JOB_INDEX")
    status, outputs, _ = script(
        folder, "verify", PYTHON=str(gate), WORKING_DIRECTORY=".", COMMENT_ID="x", **dict.fromkeys(keys, "")
    )
    assert (status, outputs["exit-code"]) == (0, str(code))
    return Path(outputs["folder"])


def reported(folder: Path, stage: str, results: Path, code: str) -> int:
    """The exit code of the report."""
    status, _, _ = script(
        folder,
        "report",
        WORKING_DIRECTORY=".",
        COMMENT="never",
        COMMENT_ID="x",
        FAIL_ON="violation",
        TEMPLATE="",
        ARTIFACT_URL="",
        ALLOW_PULL_REQUEST_TARGET="true",
        FOLDER=str(results),
        EXIT_CODE=code,
        STAGE=stage,
    )
    return status


@pytest.mark.slow
@pytest.mark.parametrize(("code", "status"), [(0, 0), (1, 3), (3, 3)])
def test_a_report_in_another_job_knows_how_the_run_ended(tmp_path: Path, code: int, status: int):
    """Only the results and the exit code reach the job that reports."""
    left = verified(tmp_path, code)

    ended, outputs, _ = script(tmp_path, "gather", RESULTS=str(left))

    assert (ended, outputs["exit-code"]) == (0, str(code))
    assert reported(tmp_path, "one", Path(outputs["folder"]), outputs["exit-code"]) == status


@pytest.mark.slow
@pytest.mark.parametrize("text", ["", "no", "-1", "$(exit 7)", "::error::x", "08"])
def test_an_exit_code_of_a_stranger_is_a_number(tmp_path: Path, text: str):
    """Whatever the file contains, the script continues and prints none of it."""
    left = verified(tmp_path, 0)
    (left / "exit-code").write_text(text)

    ended, outputs, log = script(tmp_path, "gather", RESULTS=str(left))

    assert ended == 0
    assert outputs["exit-code"].isdecimal()
    assert "::error::x" not in log


@pytest.mark.parametrize(("files", "megabytes"), [(1, 200), (3, 50)])
def test_more_results_than_a_job_can_judge_are_not_read(tmp_path: Path, files: int, megabytes: int):
    """A stranger may upload any number of files, which take little space in an archive."""
    for number in range(files):
        path = tmp_path / "left" / str(number) / "results.json"
        path.parent.mkdir(parents=True)
        with path.open("wb") as file:
            file.truncate(megabytes << 20)

    ended, outputs, log = script(tmp_path, "gather", RESULTS=str(tmp_path / "left"))

    assert ended == 0
    assert outputs["exit-code"] == "0"
    assert "more than 128 MiB" in log
    assert list(Path(outputs["folder"]).iterdir()) == []
