"""Observe the model of one job: load -> controls -> eager -> export -> targets. Start reading the worker here.

Eager and export each get an instance of their own from the factory: an ExportedProgram shares buffers with the module
it came from. Eager is released before the export, so that the weights are in memory once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from torch.nn.modules.lazy import LazyModuleMixin

from export_gate.wall.codec import encode
from export_gate.wall.contract import Job, ModelContract
from export_gate.wall.observation import HygieneObservation, Problem
from export_gate.wall.protocol import Event
from export_gate.wall.request import Observe
from export_gate.worker.controls.made import with_makers
from export_gate.worker.model import hygiene
from export_gate.worker.model.adapt import adapt, builds_objects, input_changes
from export_gate.worker.model.factory import (
    check_inputs,
    factory_package,
    forward_parameters,
    is_scripted,
    load_factory,
)
from export_gate.worker.model.reference_file import ReferenceFile
from export_gate.worker.process.channel import Channel
from export_gate.worker.process.dependencies import find_dependencies
from export_gate.worker.process.files_read import files_read
from export_gate.worker.process.integrity import watched
from export_gate.worker.process.looking import looks_noted
from export_gate.worker.process.recording import Seen, recorded
from export_gate.worker.process.stages import Desk, at_desk
from export_gate.worker.process.variables import look_ups_noted
from export_gate.worker.study.allowance import Allowance
from export_gate.worker.study.eager import observe_behaviour, observe_eager
from export_gate.worker.study.handed_in import require_artifacts
from export_gate.worker.study.probing import eager_begun
from export_gate.worker.study.records import Study
from export_gate.worker.study.recurrent import recurrent_layers
from export_gate.worker.study.relations import missing_relations
from export_gate.worker.study.subject import Subject
from export_gate.worker.study.tables import with_table_ranges
from export_gate.worker.study.trial import choose_trial
from export_gate.worker.study.variants import EachTarget, observe_variants

Sequel = Callable[[Study, Desk], None]
"""Further work on a model after it was observed."""
_OBSERVE = Observe()


def observe_model(
    job: Job,
    channel: Channel,
    then: Sequel | None = None,
    *,
    each: EachTarget | None = None,
    task: Observe = _OBSERVE,
) -> None:
    """Observe the job's model and send every fact as it is known.

    Args:
        job: the model.
        channel: where the facts go.
        then: follows once its targets are done.
        each: follows on each target of each export, while its program is there.
        task: whether experiments follow a failure, and whether the model's dependencies are sent.
    """
    # What watches the project's code begins before any of it is imported.
    started, seen = time.perf_counter(), recorded()
    with _noted(job, seen) as missed, watched() as replaced:
        with at_desk(job, channel) as desk:
            _observe(job, desk, then, each, Allowance(is_off=not task.diagnosis))
        names = replaced()
        if names:
            channel.set("problem", _tampered(job.contract, names))
        channel.set("variables_missed", missed())
    channel.set("files", files_read(seen, Path(job.base)))
    if task.dependencies:
        found = encode(find_dependencies(seen, job))
        channel.send(Event(op="answer", model=job.contract.name, field="dependencies", value=found))
    channel.set("duration_s", time.perf_counter() - started)


@contextmanager
def _noted(job: Job, seen: Seen) -> Iterator[Callable[[], list[str]]]:
    """Note what the project's code looks for; yields what says which variables it does not get."""
    roots = tuple(Path(folder) for folder in (job.base, *job.pythonpath))
    note = partial(seen.note, "asked")
    with looks_noted(seen), look_ups_noted(job.withheld, roots, factory_package(job.contract), note) as missed:
        yield missed


MOST_NAMES = 5
"""Layers that a message names."""


class LazyLayers(Exception):  # noqa: N818 - a fault of the model, not of ours
    """Layers have no weights before their first call, so there is nothing to export yet."""


def _refuse_lazy_layers(module: torch.nn.Module) -> None:
    lazy = [
        name or "the model"
        for name, part in module.named_modules()
        if isinstance(part, LazyModuleMixin) and part.has_uninitialized_params()
    ]
    if lazy:
        shown = f"{', '.join(lazy[:MOST_NAMES])}{', ...' if len(lazy) > MOST_NAMES else ''}"
        raise LazyLayers(f"lazy layers that nobody has run have no weights yet: {shown}")


def load_subject(contract: ModelContract, base: Path, desk: Desk) -> Subject | None:
    """A fresh instance and how it is called; None if it is TorchScript, of which a target would be exported."""
    with desk.stage("model"):
        factory = load_factory(contract, base)
        changes = input_changes(contract, base)
        if changes:
            factory = replace(
                factory, adapt=partial(adapt, changes=changes, is_output_kept=not builds_objects(contract))
            )
        module = factory()
        facts = _facts(module, contract, is_exported=not factory.takes_callables)
        # Before the return below, because the rules report TorchScript from it.
        desk.channel.set("hygiene", facts)
        _refuse_lazy_layers(module)
        desk.channel.set("parameters", sum(weight.numel() for weight in module.parameters()))
        desk.channel.set("weights_bytes", sum(w.numel() * w.element_size() for w in module.parameters()))
        if facts.scripted:
            return None
        if facts.forced_eval:
            module.eval()
        parameters = forward_parameters(module)
        check_inputs(contract, parameters)
    return Subject(
        contract=contract,
        factory=replace(factory, force_eval=facts.forced_eval),
        module=module,
        parameters=parameters,
        hygiene=facts,
    )


def _observe(job: Job, desk: Desk, then: Sequel | None, each: EachTarget | None, allowance: Allowance) -> None:
    require_artifacts(job.contract, Path(job.base))
    job = replace(job, contract=with_makers(job.contract, Path(job.base)))
    subject = load_subject(job.contract, Path(job.base), desk)
    if subject is None:
        return
    weights = hygiene.weight_digest(subject.module)  # before anything runs: forward may write into buffers
    with desk.stage("controls"):
        subject, notes = with_table_ranges(subject, desk)
        job = replace(job, contract=subject.contract)
        trial = choose_trial(job, subject, desk, notes)
        desk.channel.set("controls", trial.observation)
    file = ReferenceFile(folder=Path(job.artifacts))
    with desk.stage("eager"):
        facts, unknown = observe_behaviour(trial.cases, subject, desk)
        with eager_begun(subject, trial.cases, file) as asked:
            eager = observe_eager(trial.cases, subject, file, desk)
            desk.channel.at("eager")
            desk.channel.set("relations", missing_relations(trial.cases, eager, subject, desk))
            probing = asked(eager)
        # A refusal explains why the behaviour is not known, and is reported already.
        if unknown is not None and len(eager.references) == len(trial.cases):
            raise unknown
    if not eager.references:
        return  # eager refuses every control input: contract-broken reports it
    study = Study(
        job=job,
        factory=subject.factory,
        parameters=subject.parameters,
        trial=trial,
        eager=eager,
        file=file,
        hygiene=facts,
        weights=weights,
        recurrent=recurrent_layers(subject),
        probing=probing,
        allowance=allowance,
    )
    # With them the eager instance is released before the export: also the traceback of an exception holds it.
    del subject, asked, unknown
    observe_variants(study, desk, each)
    if then is not None:
        then(study, desk)


def _tampered(contract: ModelContract, names: tuple[str, ...]) -> Problem:
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return Problem(
        message=f"models.{contract.name}: the project's code replaced {names[0]}{more}, which is part of export-gate",
        hint="take that out: a model that changes what checks it cannot be checked",
    )


def _facts(module: torch.nn.Module, contract: ModelContract, *, is_exported: bool) -> HygieneObservation:
    """Train mode and TorchScript that cannot be exported, before anything runs."""
    names, count = hygiene.training_modules(module)
    return HygieneObservation(
        train_modules=names,
        train_module_count=count,
        forced_eval=contract.train_mode == "force-eval" and count > 0,
        scripted=is_exported and is_scripted(module),
    )
