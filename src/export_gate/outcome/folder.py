"""Prepare the report folder before a run, and fill it afterwards."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

from export_gate.outcome.handed_in import refuse_own_artifacts
from export_gate.outcome.judging import Outcome
from export_gate.outcome.links import REPORTS, refuse_links
from export_gate.report.artifacts import write_manifests
from export_gate.report.html import compile_page, render_html
from export_gate.report.render import compile_templates, render
from export_gate.report.results import write_results
from export_gate.wall.contract import Job, cases_folder
from export_gate.wall.errors import GateError, UserError

OURS = "*\n"
"""The .gitignore that identifies a report folder; it keeps the whole folder out of git."""


def publish(outcome: Outcome, folder: Path) -> None:
    """Write results.json, report.md, report.html and the artifacts' manifests.

    Raises:
        GateError: one of them cannot be written.
    """
    # First: from results, every report can be made again.
    write_results(outcome.results, folder / "results.json")
    try:
        (folder / "report.md").write_text(render(outcome.report, "markdown"), encoding="utf-8")
        (folder / "report.html").write_text(render_html(outcome.results, outcome.report), encoding="utf-8")
        write_manifests(outcome.results, folder)
    except OSError as error:
        raise GateError(f"{folder}: cannot write the report: {error.strerror or error}") from error


def prepare_reports() -> None:
    """Begin to compile the templates, in a thread: until the worker ends, the run has nothing else to do."""

    def compile_all() -> None:
        compile_templates()
        compile_page()

    threading.Thread(target=compile_all, daemon=True).start()


def prepare_folder(folder: Path, jobs: tuple[Job, ...]) -> None:
    """Create the report folder, ignored by git, and remove an earlier run's files of the same models.

    Raises:
        UserError: the folder or an entry of ours is a symbolic link, or a foreign file or a handed-in artifact would
            be removed or overwritten.
        GateError: the folder cannot be written.
    """
    # All refusals come before the first removal: a run that cannot start must not cost anything.
    refuse_links(folder, jobs)
    refuse_own_artifacts(folder, jobs)
    try:
        _refuse_foreign(folder, jobs)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".gitignore").write_text(OURS, encoding="utf-8")
        for stale in REPORTS:
            (folder / stale).unlink(missing_ok=True)
        for job in jobs:
            # What cannot be removed shows when the run writes there.
            shutil.rmtree(job.artifacts, ignore_errors=True)
            shutil.rmtree(cases_folder(Path(job.artifacts)), ignore_errors=True)
            (folder / "logs" / f"{job.contract.name}.log").unlink(missing_ok=True)
    except OSError as error:
        raise GateError(f"{folder}: cannot write the report folder: {error.strerror or error}") from error


def _refuse_foreign(folder: Path, jobs: tuple[Job, ...]) -> None:
    """If no run has written the folder yet, refuse files at the paths that this run removes and writes."""
    mark = folder / ".gitignore"
    if mark.is_file() and mark.read_text(encoding="utf-8", errors="replace") == OURS:
        return
    places = (mark, *(folder / name for name in REPORTS), *(Path(job.artifacts) for job in jobs))
    places = (*places, *(cases_folder(Path(job.artifacts)) for job in jobs))
    for place in places:
        if place.exists():
            raise UserError(
                f"{place}: already exists, is not from an earlier run, and would be removed or overwritten",
                "name another folder with --report-dir, preferably a new one",
            )
