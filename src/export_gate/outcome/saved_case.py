"""Copy the smallest failing input of the worst finding to where the command line wants it."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

from export_gate.outcome.judging import Outcome, with_findings
from export_gate.rules.base import Finding
from export_gate.wall.errors import GateError
from export_gate.wall.repository import config_folder


def save_smallest(outcome: Outcome, folder: Path, place: Path) -> Outcome:
    """The outcome with that finding's command naming the file; a note if no finding has such an input.

    Raises:
        GateError: the file cannot be written.
    """
    found = next((each for each in outcome.judgement.findings if _file(each, folder) is not None), None)
    source = None if found is None else _file(found, folder)
    if found is None or source is None:
        return replace(outcome, notes=(*outcome.notes, f"{place}: not written, there is no smallest failing input"))
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, place)
    except OSError as error:
        raise GateError(f"{place}: cannot be written: {error.strerror or error}") from error
    config = config_folder(Path(outcome.results.config_path))
    kept = replace(found, saved_case=Path(os.path.relpath(place.resolve(), config)).as_posix())
    # By identity, because two findings can be equal.
    findings = tuple(kept if each is found else each for each in outcome.judgement.findings)
    return with_findings(outcome, findings)


def _file(finding: Finding, folder: Path) -> Path | None:
    """The file that the worker wrote, or None if the record names something outside the report folder."""
    if finding.smallest is None or not finding.smallest.file:
        return None
    path, root = folder / finding.smallest.file, folder.resolve()
    return path if path.is_file() and not path.is_symlink() and path.resolve().is_relative_to(root) else None
