"""`export-gate publish` with other steps: the run's log instead of results, annotations made elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
import report_samples as samples
from harness.gate import Done, gate

from export_gate.report.results import write_results

MISTAKES = [f"export-gate.yml:{line}:5: models.head.factroy: a mistake" for line in range(1, 41)]


def publish(folder: Path, *options: str) -> Done:
    """Publish the folder's results outside of any pull request; GitHub's files are there."""
    environ = {"GITHUB_STEP_SUMMARY": str(folder / "summary.md"), "GITHUB_OUTPUT": str(folder / "output")}
    return gate(folder, "publish", *options, folder / "results.json", environment=environ)


def test_log_says_why_there_are_no_results(tmp_path: Path):
    """If the run wrote no results, the last 20 lines of its log are the reason."""
    (tmp_path / "log").write_text("\n".join(["export-gate 0.1.0: starting", *MISTAKES, ""]))
    done = publish(tmp_path, "--log", "log")
    assert done.returncode == 3
    assert done.stdout.splitlines()[0] == (
        "::error title=the run%3A could not be checked::There are no results: "
        + "%0A".join(MISTAKES[-20:])
        + "%0Anext: The log of the step that ran the gate shows the reason: a mistake in the config, or a run that was "
        "stopped.%0Arun: export-gate run"
    )
    summary = (tmp_path / "summary.md").read_text()
    assert "a mistake" in summary
    assert "starting" not in summary


def test_log_is_not_read_where_there_are_results(tmp_path: Path):
    """With results, even unreadable ones, the log is not read; a missing log changes nothing."""
    (tmp_path / "log").write_text("the log")
    (tmp_path / "results.json").write_text("{")
    assert "the log" not in publish(tmp_path, "--log", "log").stdout
    (tmp_path / "results.json").unlink()
    assert "results.json: file not found" in publish(tmp_path, "--log", "other").stdout


@pytest.mark.slow
def test_annotations_can_be_left_to_another_job(tmp_path: Path):
    """--no-annotations does not change summary, outputs and exit code."""
    write_results(samples.red(), tmp_path / "results.json")
    assert "::error " in publish(tmp_path).stdout
    (tmp_path / "summary.md").unlink()
    quiet = publish(tmp_path, "--no-annotations")
    assert quiet.returncode == 1
    assert "::error" not in quiet.stdout
    assert "value-mismatch" in (tmp_path / "summary.md").read_text()
    assert "verdict<<" in (tmp_path / "output").read_text()
