"""Compare the verified artifacts with the files on disk: in the driver, at the end of the run."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from export_gate.wall.contract import Job
from export_gate.wall.digest import digest_file
from export_gate.wall.observation import ARTIFACT_CHANGED, Failure, ModelObservation, RunObservation, TargetObservation

DIGITS_SHOWN = 12


def sealed(run: RunObservation, jobs: tuple[Job, ...], folder: Path) -> RunObservation:
    """The observations, with a failure at each artifact whose files are not those that were verified.

    Called when every process of the project's code is gone.
    """
    by_name = {job.contract.name: job for job in jobs}
    roots = {model.model: _roots(model, by_name[model.model], folder) for model in run.models if model.model in by_name}
    paths = [
        roots[model.model][target.target] / name
        for model in run.models
        if model.model in roots
        for target in model.targets
        for name in _files(target)
    ]
    with ThreadPoolExecutor() as pool:  # hashlib releases the GIL
        found = dict(zip(paths, pool.map(_digest_or_reason, paths), strict=True))
    return replace(
        run,
        models=tuple(
            replace(model, targets=tuple(_target(t, roots[model.model][t.target], found) for t in model.targets))
            if model.model in roots
            else model
            for model in run.models
        ),
    )


def remove_unfinished(run: RunObservation, jobs: tuple[Job, ...]) -> None:
    """Remove files that failed or killed conversions left unfinished: only whole artifacts stay.

    Called when every process of the project's code is gone.
    """
    whole = {name for model in run.models for t in model.targets if t.artifact for name in t.artifact.files}
    for job in jobs:
        folder = Path(job.artifacts)
        report = folder.parent.parent
        # In reverse, contents come before their folder, which is then empty.
        for path in sorted(folder.rglob("*"), reverse=True) if folder.is_dir() else ():
            # A link goes before anything asks what it points to: project code may have made it.
            if path.is_symlink() or (path.is_file() and path.relative_to(report).as_posix() not in whole):
                path.unlink(missing_ok=True)
            elif path.is_dir() and not any(path.iterdir()):
                path.rmdir()


def _roots(model: ModelObservation, job: Job, folder: Path) -> dict[str, Path]:
    """The folder that the names of each target's files are relative to."""
    handed_in = {target.name for target in job.contract.targets if target.artifact is not None}
    return {t.target: Path(job.base) if t.target in handed_in else folder for t in model.targets}


def _files(target: TargetObservation) -> Mapping[str, str]:
    return target.artifact.files if target.artifact else {}


def _target(target: TargetObservation, root: Path, found: Mapping[Path, str]) -> TargetObservation:
    for name, verified in _files(target).items():
        if found[root / name] != verified and target.failure is None:
            return replace(target, failure=_changed(name, verified, found[root / name]))
    return target


def _digest_or_reason(path: Path) -> str:
    try:
        return digest_file(path) if path.is_file() else "no file"
    except OSError as error:
        return error.strerror or "unreadable"


def _changed(name: str, verified: str, found: str) -> Failure:
    """The change, with both digests, or with why there is no digest now."""
    now = f"{found[:DIGITS_SHOWN]}..." if len(found) == len(verified) else found
    message = f"{name} was sha256 {verified[:DIGITS_SHOWN]}... when it was loaded; now it is {now}"
    return Failure(stage="load", kind="exception", type=ARTIFACT_CHANGED, message=message)
