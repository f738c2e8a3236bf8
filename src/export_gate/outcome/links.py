"""The report folder's own entries that are symbolic links: cleaning and writing there would reach somewhere else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from export_gate.wall.contract import Job
from export_gate.wall.errors import UserError

REPORTS = ("results.json", "report.md", "report.html")
"""What a run writes for people, at the top of the folder."""


def refuse_links(folder: Path, jobs: tuple[Job, ...]) -> None:
    """Hold the report folder, and what the gate removes and writes in it, against symbolic links.

    Folders above it may be links: that is how the user has laid out the disk. A link at its place, or inside it, may
    come from the repository or from an earlier run's model.

    Raises:
        UserError: one is a link.
    """
    for place in _places(folder, jobs):
        if place.is_symlink():
            raise UserError(
                f"{place}: expected a folder or file of the gate's own, got a symbolic link to {place.readlink()}: "
                "what lies there would be removed or written over",
                "remove the link, or name another folder with --report-dir",
            )


def _places(folder: Path, jobs: tuple[Job, ...]) -> Iterator[Path]:
    yield folder
    for name in (".gitignore", *REPORTS, "artifacts", "logs"):
        yield folder / name
    for job in jobs:
        yield Path(job.artifacts)
        yield folder / "logs" / f"{job.contract.name}.log"
