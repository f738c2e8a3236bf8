"""Open the cache for one run, and keep what the run verified."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from export_gate.cache.committed import require_uncommitted
from export_gate.cache.folder import CacheFolder, prune
from export_gate.cache.keep import Verdict, keep
from export_gate.cache.scene import Scene, make_scene
from export_gate.report.results import Results
from export_gate.run.checkout import described_revision
from export_gate.run.order import Order
from export_gate.wall.codec import decode
from export_gate.wall.contract import Job
from export_gate.wall.dependencies import Dependencies
from export_gate.wall.repository import repository_root


def open_cache(order: Order, python: Path, today: str) -> Scene | None:
    """The scene of the run; None if it is to verify every model.

    Raises:
        UserError: the folder is part of what is verified.
    """
    if order.cache is None or order.selection.cases or order.save_case is not None:
        return None
    place = order.cache
    root = repository_root(Path(os.path.abspath(order.config)).parent)  # noqa: PTH100 - as load_config
    require_uncommitted(place.folder, root, order.environment)
    folder = CacheFolder(path=place.folder, keeps=place.keeps, limit_bytes=place.limit_bytes)
    return make_scene(folder, order.config, python, order.environment, today)


def keep_verdicts(
    scene: Scene, results: Results, jobs: Sequence[Job], answers: Sequence[Any], report: Path
) -> tuple[str, ...]:
    """Keep the green verdicts of these jobs; returns what there is to say about the others.

    Args:
        scene: of the run.
        results: judged.
        jobs: what was observed in this run.
        answers: the worker's, which are dependencies.
        report: the report folder, which was prepared before the worker started.
    """
    notes = list(_kept(scene, results, jobs, answers, report))
    prune(scene.folder)
    if scene.folder.problem:
        notes.append(f"verdicts cannot be kept for the next run: {scene.folder.problem}")
    return tuple(notes)


def _kept(scene: Scene, results: Results, jobs: Sequence[Job], answers: Sequence[Any], report: Path) -> Iterator[str]:
    found = {each.model: each for each in (decode(Dependencies, answer) for answer in answers)}
    seen = {model.model: model for model in results.run.models}
    started_ns = (report / ".gitignore").stat().st_ctime_ns
    commit = described_revision(scene.base) or "" if jobs else ""
    for job in jobs:
        name = job.contract.name
        if name not in found or name not in seen or results.run.environment is None:
            continue
        why_not = keep(
            scene,
            Verdict(
                job=job,
                environment=results.run.environment,
                observation=seen[name],
                findings=tuple(finding for finding in results.findings if finding.model == name),
                dependencies=found[name],
                commit=commit,
                report=report,
                started_ns=started_ns,
            ),
        )
        if why_not:
            yield f"{name} will be verified again next time: {why_not}"
