"""Artifacts as they were verified, held against the files that lie there, by the worker and at last by the driver."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from export_gate.contract import Job
from export_gate.observation import Failure, ModelObservation, RunObservation, TargetObservation

HASH_CHUNK_BYTES = 1 << 20
DIGITS_SHOWN = 12


class ArtifactChanged(Exception):  # noqa: N818 - what happened, not an error of ours
    """A file is not what was verified any more."""


def changed_message(name: str, verified: str, found: str) -> str:
    """What changed, with both digests, or why there is none now."""
    now = f"{found[:DIGITS_SHOWN]}..." if len(found) == len(verified) else found
    return f"{name} was sha256 {verified[:DIGITS_SHOWN]}... when it was loaded, now it is {now}"


def digest_file(path: Path) -> str:
    """sha256 of a file's bytes, in hex."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(HASH_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def sealed(run: RunObservation, jobs: tuple[Job, ...], folder: Path) -> RunObservation:
    """The observations, with a failure at each artifact whose files are not those that were verified.

    Called when every process of the project's code is gone.
    """
    by_name = {job.contract.name: job for job in jobs}
    return replace(
        run,
        models=tuple(
            _model(model, by_name[model.model], folder) if model.model in by_name else model for model in run.models
        ),
    )


def remove_unfinished(run: RunObservation, jobs: tuple[Job, ...]) -> None:
    """Remove what conversions that failed or died left of their files: only whole artifacts stay.

    Called when every process of the project's code is gone.
    """
    whole = {name for model in run.models for t in model.targets if t.artifact for name in t.artifact.files}
    for job in jobs:
        folder = Path(job.artifacts)
        report = folder.parent.parent
        for path in sorted(folder.rglob("*"), reverse=True) if folder.is_dir() else ():
            if path.is_symlink() or (path.is_file() and path.relative_to(report).as_posix() not in whole):
                path.unlink(missing_ok=True)
            elif path.is_dir() and not any(path.iterdir()):
                path.rmdir()


def _model(model: ModelObservation, job: Job, folder: Path) -> ModelObservation:
    handed_in = {target.name for target in job.contract.targets if getattr(target, "artifact", None) is not None}
    roots = {t.target: Path(job.base) if t.target in handed_in else folder for t in model.targets}
    return replace(model, targets=tuple(_target(target, roots[target.target]) for target in model.targets))


def _target(target: TargetObservation, root: Path) -> TargetObservation:
    files: Mapping[str, str] = target.artifact.files if target.artifact else {}
    for name, verified in files.items():
        found = _digest_or_reason(root / name)
        if found != verified and target.failure is None:
            return replace(target, failure=_changed(changed_message(name, verified, found)))
    return target


def _digest_or_reason(path: Path) -> str:
    try:
        return digest_file(path) if path.is_file() else "no file"
    except OSError as error:
        return error.strerror or "unreadable"


def _changed(message: str) -> Failure:
    return Failure(stage="load", kind="exception", type=ArtifactChanged.__name__, message=message)
