"""Open the cache for one run, and keep what the run verified."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from export_gate.cache.committed import require_uncommitted
from export_gate.cache.folder import CacheFolder
from export_gate.cache.keep import Kept, Verdict, keep
from export_gate.cache.present import Present
from export_gate.cache.prune import prune
from export_gate.cache.recall import Recalled
from export_gate.cache.scene import Scene, make_scene
from export_gate.cache.standing import Standing, write_standing
from export_gate.config import Config
from export_gate.report.results import Results
from export_gate.run.checkout import described_revision
from export_gate.run.contents import input_places
from export_gate.run.order import Order
from export_gate.wall.codec import decode
from export_gate.wall.contract import Job
from export_gate.wall.dependencies import Dependencies
from export_gate.wall.repository import in_repository, repository_root

MARK = ".gitignore"
"""Written in the report folder before the project's code begins: its time is that of the folder's file system."""


def open_cache(order: Order, python: Path, today: str) -> Scene | None:
    """The scene of the run; None if the run verifies every model.

    Raises:
        UserError: the folder is part of what is verified.
    """
    # Some control inputs say nothing of the model as a whole, and to save one, the worker has to run.
    if order.cache is None or order.selection.cases or order.save_case is not None:
        return None
    place = order.cache
    root = repository_root(Path(os.path.abspath(order.config)).parent)  # noqa: PTH100 - as load_config
    require_uncommitted(place.folder, root, order.environment)
    folder = CacheFolder(path=place.folder, keeps=place.keeps, limit_bytes=place.limit_bytes)
    scene = make_scene(folder, order.config, python, order.environment, today)
    return replace(scene, started_ns=(order.folder / MARK).stat().st_ctime_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What the worker did in this run."""

    jobs: tuple[Job, ...]
    answers: tuple[Any, ...]
    """Dependencies."""
    recalled: Recalled
    """What it did not have to do."""


def keep_verdicts(scene: Scene, results: Results, ran: Ran, order: Order, config: Config) -> tuple[str, ...]:
    """Keep the green verdicts of the jobs that ran; returns what there is to say about the others."""
    notes: list[str] = []
    entries = dict(ran.recalled.entries)
    for name, kept in _kept(scene, results, ran, order.folder):
        if kept.path is not None:
            entries[name] = kept.path
        if kept.why_not:
            notes.append(f"{name} will be verified again next time: {kept.why_not}")
    prune(scene.folder)
    if order.cache is not None and order.cache.standing and results.verdict == "verified":
        _stand(scene, results, entries, order, config)
    if scene.folder.problem:
        notes.append(f"verdicts cannot be kept for the next run: {scene.folder.problem}")
    return tuple(notes)


def _kept(scene: Scene, results: Results, ran: Ran, report: Path) -> Iterator[tuple[str, Kept]]:
    found = {each.model: each for each in (decode(Dependencies, answer) for answer in ran.answers)}
    seen = {model.model: model for model in results.run.models}
    commit = described_revision(scene.base) or "" if ran.jobs else ""
    for job in ran.jobs:
        name = job.contract.name
        if name in seen:
            scene.folder.note_duration(scene.key(name), seen[name].duration_s)
        if name not in found or name not in seen or results.run.environment is None:
            continue
        verdict = Verdict(
            job=job,
            environment=results.run.environment,
            observation=seen[name],
            findings=tuple(finding for finding in results.findings if finding.model == name),
            dependencies=found[name],
            commit=commit,
            report=report,
            started_ns=scene.started_ns,
        )
        yield name, keep(scene, verdict)


def _stand(scene: Scene, results: Results, entries: dict[str, Path], order: Order, config: Config) -> None:
    """Keep a record of the run if there is an entry of every model."""
    names = [contract.name for contract in results.contracts]
    path, present = scene.base / order.config.name, Present(scene.base)
    lock = path.with_suffix(".lock").name
    state = present.file(lock)
    # A lock that was written since is not the one that the run was judged by.
    is_late = present.changed_ns.get(lock, 0) >= scene.started_ns
    if order.cache is None or order.shard or order.base or is_late or not set(names) <= set(entries):
        return
    standing = Standing(
        config=str(path),
        config_sha256=results.config_sha256,
        lock=state,
        python_option=order.python,
        python_configured=config.python,
        python=os.path.abspath(scene.python),  # noqa: PTH100 - a venv's is a link
        models={name: entries[name].relative_to(scene.folder.path).as_posix() for name in names},
        inputs=tuple(sorted(set(_inputs(config, repository_root(scene.base))))),
    )
    write_standing(scene, order.cache.standing, standing)


def _inputs(config: Config, root: Path) -> Iterator[str]:
    """The places of control inputs from the root of the checkout; of a repository inside it, that as a whole."""
    for place in input_places(config):
        inner, _ = in_repository(place)
        if root in place.parents:
            yield (place if inner == root else inner).relative_to(root).as_posix()
