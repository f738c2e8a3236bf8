"""Write the files that the runner gives a step: the job summary and the outputs. Problems are returned as sentences."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from export_gate.github.workflow_commands import output_lines
from export_gate.report.budget import SUMMARY_BYTES, utf8_bytes
from export_gate.report.escape import prose
from export_gate.report.record import Report
from export_gate.report.render import render

KEPT_FOR_NOTES = 16 * 1024
"""Bytes of the summary that are reserved for problems after it was written."""


def append_report(path: Path | None, report: Report, foot: str) -> str:
    """Append the report to the job summary within its remaining limit, or return the problem."""
    if path is None:
        return ""
    try:
        # GitHub drops a step's summary entirely if the file exceeds the limit.
        used = path.stat().st_size if path.exists() else 0
        text = render(report, "summary", budget=SUMMARY_BYTES - used - KEPT_FOR_NOTES - utf8_bytes(foot))
        _append(path, text + foot)
    except OSError as error:
        return f"the job summary cannot be written: {error.strerror or error}"
    except ValueError:
        return "the job summary is already full"
    return ""


def append_notes(path: Path | None, notes: tuple[str, ...]) -> str:
    """Append notes about the reporting itself."""
    if path is None or not notes:
        return ""
    text = "\n".join(f"\n> [!WARNING]\n> {prose(note[:2_000])}" for note in notes[:4])
    try:
        _append(path, f"{text}\n")
    except OSError as error:
        return f"the job summary cannot be written: {error.strerror or error}"
    return ""


def append_outputs(path: Path | None, outputs: Mapping[str, str]) -> str:
    """Append the step's outputs."""
    if path is None:
        return ""
    try:
        _append(path, "".join(output_lines(name, value) for name, value in outputs.items()))
    except OSError as error:
        return f"the outputs cannot be written: {error.strerror or error}"
    return ""


def _append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8", newline="\n") as file:
        file.write(text)
