"""Refuse symbolic links in the report folder: removing and writing files would affect another place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from export_gate.wall.contract import Job, cases_folder
from export_gate.wall.errors import UserError

REPORTS = ("results.json", "report.md", "report.html")
"""Files for people, which a run writes at the top of the folder."""


def refuse_links(folder: Path, jobs: tuple[Job, ...]) -> None:
    """Check that neither the report folder nor an entry that the gate removes or writes is a symbolic link.

    Parent folders may be links: that is how the user has set up the disk. A link at its path, or inside it, may come
    from the repository or from an earlier run's model.

    Raises:
        UserError: one of them is a link.
    """
    for place in _places(folder, jobs):
        if place.is_symlink():
            raise UserError(
                f"{place}: expected the gate's own folder or file, got a symbolic link to {place.readlink()}: "
                "the files there would be removed or overwritten",
                "remove the link, or name another folder with --report-dir",
            )


def _places(folder: Path, jobs: tuple[Job, ...]) -> Iterator[Path]:
    yield folder
    for name in (".gitignore", *REPORTS, "artifacts", "cases", "logs"):
        yield folder / name
    for job in jobs:
        yield Path(job.artifacts)
        yield cases_folder(Path(job.artifacts))
        yield folder / "logs" / f"{job.contract.name}.log"
