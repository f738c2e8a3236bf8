"""Ask for control inputs that only the exported programs make known, with eager's answers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from export_gate.wall.observation import Branch, ControlInput, PromiseBroken
from export_gate.worker.controls.build import reference_sizes, reference_values
from export_gate.worker.controls.layout import tensors_of
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.controls.threshold_rows import threshold_cases
from export_gate.worker.export.branches import Guard, guards_in_dims
from export_gate.worker.export.randomness import random_operators, random_source
from export_gate.worker.export.thresholds import thresholds
from export_gate.worker.model.factory import bind
from export_gate.worker.model.reference import Reference, Runner, module_runner
from export_gate.worker.model.thresholds import EagerThresholds, Threshold
from export_gate.worker.process.stages import Desk
from export_gate.worker.study.branching import branching, with_swept
from export_gate.worker.study.eager import ask_eager
from export_gate.worker.study.handed_in import existing_artifact
from export_gate.worker.study.records import Export, Study, Variant
from export_gate.worker.study.refused_guard import in_one_dim
from export_gate.worker.study.sweeping import Sweep, affordable, answered
from export_gate.worker.study.table_reads import edited_rows
from export_gate.worker.study.trial import is_named


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Further control inputs of one variant."""

    cases: tuple[ControlCase, ...] = ()
    references: dict[str, Reference] = field(default_factory=dict)
    """Eager's answers; those that it refuses are missing."""
    sweep: Sweep = field(default_factory=Sweep)
    """Sizes at which only differences are recorded."""


@dataclass(slots=True, kw_only=True)
class Further:
    """Gathers what all variants ask for, because each kind of fact is reported as a whole."""

    study: Study
    desk: Desk
    inputs: list[ControlInput] = field(default_factory=list)
    broken: list[PromiseBroken] = field(default_factory=list)
    branches: list[Branch] = field(default_factory=list)
    operators: list[str] = field(default_factory=list)

    def asked_by(self, export: Export | None, variant: Variant) -> Asked:
        """The variant's further control inputs; if the run is narrowed, only those that it names.

        Nothing for a model with state: an instance with another history than the program's answers these inputs, so
        that every later answer would differ. Such a model is red as it is.
        """
        if self.study.hygiene.state_changed:
            return Asked()
        patterns, guards = self.study.job.cases, self._guards(export, variant)
        swept: tuple[ControlCase, ...] = ()
        if patterns:
            cases = tuple(case for case in self._at_thresholds(export, variant) if is_named(case, patterns))
        else:
            cases = () if export is None else self._branching(export, guards, variant)
            cases += self._at_thresholds(export, variant)
            nodes = len(export.exported.program.graph.nodes) if export else None
            swept = () if variant.separate else self._swept((*variant.cases, *cases), nodes)
            if swept:
                self._sort_swept(guards, swept)
        if not cases and not swept:
            return Asked()
        run = module_runner(export.eager() if export else self.study.factory(), self.study.eager.names)
        references = self._answers(cases, run)
        self.inputs += [ControlInput(name=c.name, family=c.family, sizes=dict(c.sizes), group=c.group) for c in cases]
        sweep = answered(self._answers(swept, run), swept)
        self._report()
        return Asked(cases=cases, references=references, sweep=sweep)

    def _guards(self, export: Export | None, variant: Variant) -> tuple[Guard, ...]:
        if export is None:
            return ()
        contract = self.study.contract
        found = guards_in_dims(export.exported, contract, self.study.parameters)
        simpler = [in_one_dim(contract, guard, variant.separate) for guard in found]
        return tuple({guard.words: guard for guard in simpler}.values())

    def _branching(self, export: Export, guards: Sequence[Guard], variant: Variant) -> tuple[ControlCase, ...]:
        drawing = random_operators(export.exported.program)
        self.operators += [name for name in drawing if name not in self.operators]
        self.desk.channel.set("random_operators", self.operators)
        if drawing:
            self.desk.channel.set("random_source", random_source(export.exported.program, self.desk.roots))
        found = branching(self.study.contract, guards, variant.separate, variant.cases, self.desk.roots)
        self.branches += found.branches
        self.desk.channel.set("branches", self.branches)
        return found.cases

    def _sort_swept(self, guards: Sequence[Guard], swept: tuple[ControlCase, ...]) -> None:
        """Say which sizes of the sweep take a branch that this export did not follow."""
        self.branches = [with_swept(branch, guards, swept) for branch in self.branches]
        self.desk.channel.set("branches", self.branches)

    def _at_thresholds(self, export: Export | None, variant: Variant) -> tuple[ControlCase, ...]:
        """Control inputs at the constants of the main export alone, because constants do not depend on sizes."""
        if variant.separate:
            return ()
        found = self._eager_thresholds() if export is None else thresholds(export.exported.program)
        return threshold_cases(self.study.contract, (*self._edited_rows(), *found))

    def _edited_rows(self) -> Iterator[Threshold]:
        """Numbers of rows that somebody has changed in tables of a handed-in file: hardly any draw reads them."""
        base = Path(self.study.job.base)
        given = [existing_artifact(target, base) for target in self.study.contract.targets if target.kind == "onnx"]
        paths = [path for path in given if path is not None]
        own = self.study.laboratory().weights_of_eager() if paths else []
        for path in paths:
            with contextlib.suppress(Exception):  # the file cannot be read, which its target reports
                yield from (Threshold(value=float(row), is_step=False) for row in edited_rows(path, own))

    def _eager_thresholds(self) -> tuple[Threshold, ...]:
        """What eager itself compares with, for files that were handed in; nothing if it cannot be watched."""
        contract = self.study.contract
        values = reference_values(contract, reference_sizes(contract))
        with contextlib.suppress(Exception):
            eager = self.study.factory()
            weights = [*eager.parameters(), *eager.buffers()] if isinstance(eager, torch.nn.Module) else []
            watch = EagerThresholds(weights, tensors_of(values).values())
            run = module_runner(eager, self.study.eager.names)
            with watch:
                run(bind(values, self.study.parameters))
            return watch.found
        return ()

    def _swept(self, known: tuple[ControlCase, ...], nodes: int | None) -> tuple[ControlCase, ...]:
        return affordable(self.study.contract, known, self.study.trial.observation.case_flops, nodes)

    def _answers(self, cases: tuple[ControlCase, ...], run: Runner) -> dict[str, Reference]:
        answers = ask_eager(
            cases, run, self.study.parameters, self.study.contract, file=self.study.file, desk=self.desk
        )
        self.broken += answers.broken
        return answers.references

    def _report(self) -> None:
        controls, channel = self.study.trial.observation, self.desk.channel
        channel.set("controls", replace(controls, inputs=(*controls.inputs, *self.inputs)))
        channel.set("broken", (*self.study.eager.broken, *self.broken))
