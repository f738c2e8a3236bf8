"""What the exported programs ask for: control inputs that nobody could know before the export, with eager's answers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from export_gate.wall.observation import Branch, ControlInput, PromiseBroken
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.export.branches import guards_in_dims
from export_gate.worker.model.reference import Reference, module_runner
from export_gate.worker.process.stages import Desk
from export_gate.worker.study.branching import branching
from export_gate.worker.study.eager import ask_eager
from export_gate.worker.study.records import Export, Study, Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Further control inputs of one variant."""

    cases: tuple[ControlCase, ...] = ()
    references: dict[str, Reference] = field(default_factory=dict)
    """Eager's answers; those that it refuses are missing."""


@dataclass(slots=True, kw_only=True)
class Further:
    """Gathers what all variants ask for, because each kind of fact is reported as a whole."""

    study: Study
    desk: Desk
    inputs: list[ControlInput] = field(default_factory=list)
    broken: list[PromiseBroken] = field(default_factory=list)
    branches: list[Branch] = field(default_factory=list)

    def asked_by(self, export: Export | None, variant: Variant) -> Asked:
        """The variant's further control inputs; none where the run is narrowed to some control inputs."""
        if export is None or self.study.job.cases:
            return Asked()
        contract, parameters = self.study.contract, self.study.parameters
        guards = guards_in_dims(export.exported.program, contract, parameters)
        found = branching(contract, guards, variant.separate, variant.cases)
        self.branches += found.branches
        self.desk.channel.set("branches", self.branches)
        return self._answered(found.cases, export)

    def _answered(self, cases: tuple[ControlCase, ...], export: Export) -> Asked:
        if not cases:
            return Asked()
        study, channel = self.study, self.desk.channel
        run = module_runner(export.eager(), study.eager.names)
        answers = ask_eager(cases, run, study.parameters, study.contract, self.desk)
        self.inputs += [ControlInput(name=c.name, family=c.family, sizes=dict(c.sizes), group=c.group) for c in cases]
        self.broken += answers.broken
        controls = study.trial.observation
        channel.set("controls", replace(controls, inputs=(*controls.inputs, *self.inputs)))
        channel.set("broken", (*study.eager.broken, *self.broken))
        return Asked(cases=cases, references=answers.references)
