"""Artifacts that a config hands in, held against the folder that a run clears."""

from __future__ import annotations

from pathlib import Path

from export_gate.wall.contract import Job
from export_gate.wall.errors import UserError


def refuse_own_artifacts(folder: Path, jobs: tuple[Job, ...]) -> None:
    """Hold every `artifact` key against the gate's own artifacts in the report folder.

    A run removes them first, so such a file would be gone before it could be verified.

    Raises:
        UserError: one names a file there, as it is written or through a link.
    """
    own = (folder / "artifacts").resolve()
    for job in jobs:
        for target in job.contract.targets:
            artifact = getattr(target, "artifact", None)
            if artifact is not None and own in (Path(job.base) / artifact).resolve().parents:
                raise UserError(
                    f"models.{job.contract.name}.targets.{target.name}.artifact: {artifact} is in the report folder's "
                    f"{own}, which every run clears: expected a file elsewhere",
                    "copy it to a folder of the project (dist/, say) and name the copy, or name another --report-dir",
                )
