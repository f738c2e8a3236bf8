"""One mutation to what became of it: loaded, run at the control inputs, and searched for if they do not notice."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from export_gate.wall.strength import Catch, Mutant, Outcome
from export_gate.worker.leaves.bits import digest_of
from export_gate.worker.leaves.values import Leaf
from export_gate.worker.model.reference import Reference, Runner, without_ignored
from export_gate.worker.mutants.origin import origin
from export_gate.worker.mutants.record import Mutation
from export_gate.worker.nodes.file import FileGraph
from export_gate.worker.onnx_file.session import open_session
from export_gate.worker.process.failures import describe
from export_gate.worker.study.exam import Judge, Question
from export_gate.worker.study.laboratory import attempt
from export_gate.worker.study.verify import comparable
from export_gate.worker.targets.onnx import opened

SHOWN = 200
"""Characters of what a runtime says."""
FAMILIES_SHOWN = 3
ENOUGH = 12
"""Random inputs that tell a survivor apart, after which the search ends: each is judged by experiments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examiner:
    """What all mutants of one file share."""

    judge: Judge
    graph: FileGraph
    run: Runner
    """Runs the file itself."""
    mutations: Sequence[Mutation]
    controls: Sequence[Question]
    searched: Sequence[Question]
    roots: tuple[Path, ...]
    """Folders of the project's own code."""
    deadline: float = math.inf
    """By `time.monotonic`, which forked copies share."""

    def examine(self, number: int) -> Mutant:
        """Try one mutant."""
        untried = self.described(number)
        if time.monotonic() > self.deadline:
            return untried
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                model = self._planted(self.mutations[number])
                if model.graph == self._blank().graph:
                    return replace(untried, outcome="equivalent")  # five percent more of nothing, say
                run = self._opened(model)
            except Exception as error:  # noqa: BLE001 - whatever a broken file makes a runtime say
                return replace(untried, outcome="refused", caught_by=describe(error)[:SHOWN])
            return self._at_controls(untried, run)

    def died(self, number: int, ending: str) -> Mutant:
        """A mutant that ended its process."""
        return replace(self.described(number), outcome="refused", caught_by=f"the process ended: {ending}")

    def described(self, number: int) -> Mutant:
        """The mutant before it is tried."""
        mutation = self.mutations[number]
        node = self.graph.model.graph.node[mutation.at] if mutation.at >= 0 else None
        module, source = ("", None) if node is None else origin(node, self.roots)
        return Mutant(
            kind=mutation.kind,
            operator=mutation.operator,
            node="" if node is None else node.name or node.output[0],
            change=mutation.change,
            module=module,
            source=source,
            outcome="untried",
        )

    def _blank(self) -> Any:
        """A copy of the file's model, without the types of values, which are those of the file as it was."""
        import onnx

        copy = onnx.ModelProto()
        copy.CopyFrom(self.graph.model)
        del copy.graph.value_info[:]
        return copy

    def _planted(self, mutation: Mutation) -> Any:
        copy = self._blank()
        mutation.edit(copy)
        return copy

    def _opened(self, model: Any) -> Runner:
        work = self.judge.work
        providers, optimization = work.target.option("providers", tuple), work.target.option("optimization", str)
        session = open_session(self.graph.path, providers, optimization, serialized=model.SerializeToString())
        loaded = opened(work.context, work.target, session, model)
        return comparable(loaded, work.context.contract.outputs).run

    def _at_controls(self, mutant: Mutant, run: Runner) -> Mutant:
        references = {**self.judge.work.sweep.references, **self.judge.work.references}
        for question in self.controls:
            case = question.case
            try:
                leaves = run(question.call)
            except Exception as error:  # noqa: BLE001 - as above
                return replace(mutant, outcome="refused", caught_by=f"{case.name}: {describe(error)[:SHOWN]}")
            if digest_of(leaves) != question.own and self.judge.is_wrong(case, references[case.name], leaves, run):
                return replace(mutant, outcome="caught", caught_by=case.name)
        return self._searched(mutant, run)

    def _searched(self, mutant: Mutant, run: Runner) -> Mutant:
        """Whether any random input tells the mutant from the file, and would make the check red."""
        effect, catches = 0.0, {question.case.family: Catch(family=question.case.family) for question in self.searched}
        for question in self.searched:
            if time.monotonic() > self.deadline:
                return mutant
            if sum(catch.caught for catch in catches.values()) >= ENOUGH:
                break
            found = self._effect(question, run)
            effect = max(effect, found if found < math.inf else 0.0)
            catches[question.case.family] = catches[question.case.family].after(
                question.case.name, is_caught=found == math.inf
            )
        best = sorted((catch for catch in catches.values() if catch.caught), key=lambda one: -one.caught / one.tried)
        outcome: Outcome = "survived" if best else "equivalent"
        return replace(mutant, outcome=outcome, effect=effect, would_catch=tuple(best[:FAMILIES_SHOWN]))

    def _effect(self, question: Question, run: Runner) -> float:
        """How much of what is allowed the mutant uses up; infinite if the check would be red."""
        case = question.case
        try:
            leaves = run(question.call)
        except Exception:  # noqa: BLE001 - the file itself takes this input
            return math.inf
        if digest_of(leaves) == question.own:
            return 0.0
        # Beside the file's own answer first: what stays within the tolerance of that needs no run of eager.
        effect = self.judge.effect(self.run(question.call), leaves)
        if effect <= 1:
            return effect
        expected = self._expected(question)
        if expected is None:
            return 0.0
        is_wrong = self.judge.is_wrong(case, Reference.held(case.name, expected), leaves, run)
        return math.inf if is_wrong else 1.0

    def _expected(self, question: Question) -> tuple[Leaf, ...] | None:
        found = attempt(lambda: self.judge.laboratory.again(question.case.make()))
        return None if found is None else without_ignored(found, self.judge.work.context.contract.outputs)
