"""Keep the green verdicts of a run, each with the state of everything that it depends on."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from export_gate.cache.compare import variable_state
from export_gate.cache.contracts import contract_digest
from export_gate.cache.entry import Entry
from export_gate.cache.present import MISSING
from export_gate.cache.scene import Scene
from export_gate.cache.sites import loose_files
from export_gate.rules.base import Finding
from export_gate.run.named import model_files
from export_gate.wall.codec import encode
from export_gate.wall.contract import Job
from export_gate.wall.dependencies import Dependencies
from export_gate.wall.observation import Environment, ModelObservation, RunObservation


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One model of a run that has ended."""

    job: Job
    environment: Environment
    observation: ModelObservation
    findings: tuple[Finding, ...]
    """Those of the model."""
    dependencies: Dependencies
    commit: str
    report: Path
    """The report folder."""
    started_ns: int
    """Before the project's code began, by the clock of the report folder's file system."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What became of a verdict."""

    path: Path | None = None
    """The entry; None if there is none."""
    why_not: str = ""
    """Why a green verdict cannot be reused."""


def keep(scene: Scene, verdict: Verdict) -> Kept:
    """Write an entry if the verdict is green."""
    is_green = not any(finding.severity == "violation" for finding in verdict.findings)
    if not (is_green and verdict.job.contract.cache and scene.folder.keeps and not verdict.job.cases):
        return Kept()
    if verdict.dependencies.unknown:
        reasons = (reason.replace(f"{scene.present.root}/", "") for reason in verdict.dependencies.unknown)
        return Kept(why_not="; ".join(reasons))
    entry = _entry(scene, verdict)
    late = next(_changed_meanwhile(scene, verdict, entry), None)
    if late is not None:
        return Kept(why_not=f"{late} changed while it was verified")
    # A larger one would push out the entries of all other models, and soon itself.
    size = sum((verdict.report / name).stat().st_size for name in entry.artifacts)
    if size > scene.folder.limit_bytes // 2:
        return Kept(why_not=f"its artifacts are larger than half of the cache ({size} bytes)")
    run = RunObservation(environment=verdict.environment, models=(verdict.observation,))
    observed = json.dumps(encode(run), allow_nan=False, separators=(",", ":"), sort_keys=True).encode()
    artifacts = entry.artifacts.items()
    if not all(scene.folder.add_file(verdict.report / name, digest) for name, digest in artifacts):
        return Kept()
    entry = replace(entry, observation=scene.folder.add_bytes(observed))
    return Kept(path=scene.folder.add(scene.key(entry.model), entry))


def _entry(scene: Scene, verdict: Verdict) -> Entry:
    job, found, present = verdict.job, verdict.dependencies, scene.present
    now = scene.now(job.contract.env)
    made, handed_in = _artifact_files(verdict)
    names = {*map(present.named, found.files), *_named(scene, job), *handed_in}
    names |= {name for site, entries in found.sites.items() for name in loose_files(present, site, entries)}
    folders = {*map(present.named, found.folders), *_folders(scene, job)}
    # ISO dates sort by time.
    ends = sorted(finding.waiver.until for finding in verdict.findings if finding.waiver)
    return Entry(
        repository=scene.repository,
        config=scene.config,
        model=job.contract.name,
        contract=contract_digest(job, present),
        circumstances=dict(scene.circumstances),
        files={name: present.file(name) for name in sorted(names)},
        folders={name: present.folder(name) for name in sorted(folders)},
        modules=found.modules,
        path={name: present.modules(name, found.modules) for name in map(present.named, found.path)},
        packages={
            present.named(folder): (names_there, present.modules(folder, names_there))
            for folder, names_there in found.packages.items()
        },
        sites={present.named(site): present.site(present.named(site)) for site in found.sites},
        env=job.contract.env,
        variables={name: variable_state(name, now.variables) for name in found.variables},
        commit=verdict.commit,
        day=scene.today,
        until=ends[0] if ends else "",
        duration_s=verdict.observation.duration_s,
        observation="",
        artifacts=made,
        checkout=verdict.observation.files,
    )


def _artifact_files(verdict: Verdict) -> tuple[dict[str, str], list[str]]:
    """The files that were made, with their digests; those that were handed in."""
    made: dict[str, str] = {}
    handed_in: list[str] = []
    given = {target.name for target in verdict.job.contract.targets if target.artifact is not None}
    for target in verdict.observation.targets:
        for name, digest in target.artifact.files.items() if target.artifact else ():
            if target.target in given:
                handed_in.append(os.path.join(verdict.job.base, name))  # noqa: PTH118
            else:
                made[name] = digest
    return made, handed_in


def _named(scene: Scene, job: Job) -> Iterator[str]:
    """Files that the contract names, and all that are below its `paths`."""
    for name in model_files(job.contract, job.pythonpath):
        path = os.path.normpath(scene.base / name)
        if os.path.isfile(path):  # noqa: PTH113 - a text may be no path at all
            yield scene.present.named(path)
    for name in job.contract.paths:
        yield from scene.present.below(scene.present.named(os.path.normpath(scene.base / name)))


def _folders(scene: Scene, job: Job) -> Iterator[str]:
    """The folders of `paths`, in which a file may appear."""
    for name in job.contract.paths:
        for folder, _, _ in os.walk(scene.base / name):
            yield scene.present.named(os.path.normpath(folder))


def _changed_meanwhile(scene: Scene, verdict: Verdict, entry: Entry) -> Iterator[str]:
    """Files that are perhaps not as the process read them."""
    present = scene.present
    # What the process wrote itself (generated sources, a compiler's output) changed meanwhile for a good reason.
    written = {present.named(path) for path in verdict.dependencies.written}
    was_missing = {present.named(path) for path in verdict.dependencies.missing}
    found = {present.named(path) for path in verdict.dependencies.files} - was_missing
    # Times alone miss a file that was removed.
    for name, state in entry.files.items():
        if name not in written and ((state == MISSING and name in found) or (state != MISSING and name in was_missing)):
            yield name
    inside = tuple(f"{site}/" for site in entry.sites)
    for name, changed_ns in present.changed_ns.items():
        # ctime, since tools that unpack and copy files set the mtime to a time in the past.
        is_its = (name in entry.files and name not in written) or name.startswith(inside)
        if is_its and changed_ns >= verdict.started_ns:
            yield name
    yield from _new_modules(verdict, entry, scene, written)


def _new_modules(verdict: Verdict, entry: Entry, scene: Scene, written: Sequence[str] | set[str]) -> Iterator[str]:
    """Modules that appeared too late to be imported."""
    places = [*entry.path.items(), *((folder, state) for folder, (_, state) in entry.packages.items())]
    for folder, state in places:
        for name in state.split(" ") if state not in ("", MISSING) else ():
            path = scene.present.root / folder / name
            # Not folders, which change whenever something is written inside, such as `__pycache__`.
            late = not name.endswith("/") and path.lstat().st_ctime_ns >= verdict.started_ns
            if late and scene.present.named(str(path)) not in written:
                yield f"{folder}/{name}"
