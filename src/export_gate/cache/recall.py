"""Find the verdicts that still hold, before anything of the project runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from export_gate.cache.compare import first_difference
from export_gate.cache.contracts import contract_digest
from export_gate.cache.entry import Entry
from export_gate.cache.present import Present
from export_gate.cache.scene import Scene
from export_gate.rules.judge import Terms, judge
from export_gate.wall.codec import decode
from export_gate.wall.contract import Job, ModelContract
from export_gate.wall.observation import Environment, ModelObservation, Reused, RunObservation


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """What need not be observed again."""

    models: dict[str, ModelObservation] = field(default_factory=dict)
    environment: Environment | None = None
    entries: dict[str, Path] = field(default_factory=dict)
    """Model -> its entry."""

    def rest(self, jobs: Sequence[Job]) -> tuple[Job, ...]:
        """The jobs that must run."""
        return tuple(job for job in jobs if job.contract.name not in self.models)

    def joined(self, observed: RunObservation, jobs: Sequence[Job]) -> RunObservation:
        """What was observed now and what was recalled, in the order of the jobs."""
        seen = {model.model: model for model in observed.models} | self.models
        names = [job.contract.name for job in jobs]
        return RunObservation(
            environment=observed.environment or self.environment,
            models=tuple(seen[name] for name in names if name in seen),
        )


def recall(scene: Scene, jobs: Sequence[Job], report: Path, terms: Terms) -> Recalled:
    """The verdicts that hold and are green under these terms, with their artifacts restored in the report folder."""
    models: dict[str, ModelObservation] = {}
    entries: dict[str, Path] = {}
    environment = None
    # A view of its own, since files may change while the models run: what is kept must be looked at again.
    scene = replace(scene, present=Present(scene.present.root))
    for job in jobs:
        found = _recalled(scene, job, report, terms)
        if found is not None:
            path, model, environment = found
            models[job.contract.name], entries[job.contract.name] = model, path
    return Recalled(models=models, environment=environment, entries=entries)


def holding(scene: Scene, job: Job) -> tuple[Path, Entry] | None:
    """An entry of the job's model of which nothing differs."""
    # Single cases do not add up to a verdict on the model.
    if not job.contract.cache or job.cases:
        return None
    digest, now = contract_digest(job, scene.present), scene.now(job.contract.env)
    for path, entry in scene.folder.entries(scene.key(job.contract.name)):
        # The folder's key says the same, but an entry can be copied into another model's folder.
        whose = (entry.repository, entry.config, entry.model, entry.contract)
        is_its = whose == (scene.repository, scene.config, job.contract.name, digest)
        if is_its and first_difference(entry, now) is None:
            return path, entry
    return None


def _recalled(scene: Scene, job: Job, report: Path, terms: Terms) -> tuple[Path, ModelObservation, Environment] | None:
    found = holding(scene, job)
    if found is None:
        return None
    path, entry = found
    run = _observation(scene, entry)
    if run is None or run.environment is None or not _is_green(job.contract, run, terms):
        return None
    if not all(_is_restored(scene, report, name, digest) for name, digest in entry.artifacts.items()):
        return None
    scene.folder.used(path)
    (model,) = run.models
    return path, replace(model, reused=Reused(commit=entry.commit, day=entry.day)), run.environment


def _observation(scene: Scene, entry: Entry) -> RunObservation | None:
    text = scene.folder.object_bytes(entry.observation)
    try:
        run = decode(RunObservation, json.loads(text or b"null"))
    except (ValueError, RecursionError):
        return None
    return run if [model.model for model in run.models] == [entry.model] else None


def _is_green(contract: ModelContract, run: RunObservation, terms: Terms) -> bool:
    """Whether the observations are a green verdict today, with the waivers and the lock of today."""
    judgement = judge((contract,), run, terms)
    mine = [finding for finding in judgement.findings if finding.model == contract.name]
    (model,) = run.models
    return model.problem is None and not any(finding.severity == "violation" for finding in mine)


def _is_restored(scene: Scene, report: Path, name: str, digest: str) -> bool:
    target = report / name
    # The name comes from the entry, which must not choose a file outside of the artifacts.
    is_inside = (report / "artifacts").resolve() in target.resolve().parents
    return is_inside and scene.folder.restore(digest, target)
