"""Refuse handed-in artifacts that are in the folder that a run clears."""

from __future__ import annotations

from pathlib import Path

from export_gate.wall.contract import Job
from export_gate.wall.errors import UserError


def refuse_own_artifacts(folder: Path, jobs: tuple[Job, ...]) -> None:
    """Check that no `artifact` key names one of the gate's own artifacts in the report folder.

    A run removes those first, so the file would be deleted before it could be verified.

    Raises:
        UserError: a key names a file there, directly or through a link.
    """
    own = (folder / "artifacts").resolve()
    for job in jobs:
        for target in job.contract.targets:
            artifact = target.artifact
            if artifact is not None and own in (Path(job.base) / artifact).resolve().parents:
                raise UserError(
                    f"models.{job.contract.name}.targets.{target.name}.artifact: {artifact} is in the report folder's "
                    f"{own}, which every run clears; expected a file elsewhere",
                    "copy it to a folder of the project, such as dist/, and name the copy, or use another --report-dir",
                )
