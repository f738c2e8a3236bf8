"""Run a fresh eager model: collect references, broken promises, golden comparisons and hygiene facts."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from export_gate.wall.contract import ModelContract
from export_gate.wall.noise import FLAT_FAMILIES
from export_gate.wall.observation import CaseResult, Contrast, HygieneObservation, OutputLeaf, PromiseBroken
from export_gate.wall.promises import broken_promises
from export_gate.worker.controls.flat_masks import flat_masks
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.leaves.compare import compare_case
from export_gate.worker.leaves.contrast import contrasts
from export_gate.worker.leaves.values import Call, Leaf
from export_gate.worker.model import hygiene
from export_gate.worker.model.drawing import Drawn, drawing_line, draws, numpy_line
from export_gate.worker.model.factory import Parameter, bind
from export_gate.worker.model.kept import home_of
from export_gate.worker.model.outside import changed_outside
from export_gate.worker.model.reference import (
    Reference,
    Runner,
    contract_names,
    describe_outputs,
    module_runner,
    rename,
)
from export_gate.worker.model.reference_file import ReferenceFile
from export_gate.worker.model.writing import inputs_stamp, state_stamp, writing_line
from export_gate.worker.process.stages import Desk
from export_gate.worker.study.ambience import observe_ambience
from export_gate.worker.study.chance import observe_chance, without_confusion
from export_gate.worker.study.laboratory import attempt
from export_gate.worker.study.subject import Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Eager:
    """The results of the eager model."""

    references: Mapping[str, Reference]
    """By case name, in order; cases that eager refused are missing."""
    outputs: tuple[OutputLeaf, ...]
    names: dict[str, str]
    """Eager's own leaf name -> the contract's."""
    broken: tuple[PromiseBroken, ...] = ()
    """Where it did not keep the contract."""


def observe_behaviour(
    cases: Sequence[ControlCase], subject: Subject, desk: Desk
) -> tuple[HygieneObservation, Exception | None]:
    """Observe how the fresh instance behaves apart from its values; it is fresh again afterwards.

    Where that cannot be found out only what was known before stands, with the reason. Mostly eager refuses one of the
    inputs, which its references show; any other reason must be reported, because what was not checked may be wrong.
    """
    desk.channel.at("eager", case=cases[0].name)
    chance = observe_chance(cases, subject)
    # The smallest first, because that one is repeated.
    ordered = sorted(cases, key=lambda case: math.prod(case.sizes.values()))
    calls = [partial(subject.call, case) for case in (ordered[0], *[case for case in cases if case is not ordered[0]])]
    try:
        facts = hygiene.observe_hygiene(subject.module, hygiene.unseeded_runner(subject.module), calls)
    except Exception as error:  # noqa: BLE001 - the caller reports it
        return subject.hygiene, error
    facts = _with_lines(without_confusion(facts, chance), calls[0], subject, desk)
    # A model that draws at random differs between any two copies.
    if not facts.nondeterministic:
        desk.channel.set("ambient", observe_ambience(cases, subject))
    facts = replace(facts, **{name: getattr(subject.hygiene, name) for name in ("forced_eval", *TRAINING)})
    desk.channel.set("hygiene", facts)
    return facts, None


def _with_lines(
    facts: HygieneObservation, make: Callable[[], Call], subject: Subject, desk: Desk
) -> HygieneObservation:
    """The facts with the lines that write, found in one more run of a copy."""
    mutating = state_writing = None
    try:
        if facts.nondeterministic:
            return _drawing(facts, make, subject, desk)
        if facts.state_effects and not facts.state_changed:
            return _kept_outside(facts, make, subject, desk)
        if facts.mutated_inputs:
            run, call = hygiene.unseeded_runner(subject.twin()), make()
            mutating = writing_line(lambda: run(call), inputs_stamp(call), desk.roots)
        if facts.state_changed:
            twin = subject.twin()
            run, call = hygiene.unseeded_runner(twin), make()
            state_writing = writing_line(lambda: run(call), state_stamp(twin, facts.state_changed), desk.roots)
    except Exception:  # noqa: BLE001 - a line more or less is no reason to lose what was observed
        return facts
    return _with_home(replace(facts, mutating=mutating, state_writing=state_writing), subject)


def _drawing(facts: HygieneObservation, make: Callable[[], Call], subject: Subject, desk: Desk) -> HygieneObservation:
    """The facts with what draws, or reads the clock, and its line."""
    drawn = _drawn(make, subject, desk)
    return facts if drawn is None else replace(facts, drawing=drawn.source, drawn_with=drawn.name)


def _drawn(make: Callable[[], Call], subject: Subject, desk: Desk) -> Drawn | None:
    run, call = hygiene.unseeded_runner(subject.twin()), make()
    return drawing_line(lambda: run(call), desk.roots) or numpy_line(lambda: run(call), desk.roots)


def _kept_outside(
    facts: HygieneObservation, make: Callable[[], Call], subject: Subject, desk: Desk
) -> HygieneObservation:
    """The facts with state that is no attribute of the module, and the line that writes it."""
    run = hygiene.unseeded_runner(subject.twin())
    outside = changed_outside(lambda: run(make()), desk.roots)
    if outside is None:
        return _with_own_generator(facts, make, subject, desk)
    line = writing_line(lambda: run(make()), outside.stamp, desk.roots)
    return _with_home(replace(facts, state_changed=outside.changes, state_writing=line), subject)


def _with_home(facts: HygieneObservation, subject: Subject) -> HygieneObservation:
    changes, writing = facts.state_changed, facts.state_writing
    return replace(facts, state_home=home_of(changes[0], writing, subject.module) if changes else None)


def _with_own_generator(
    facts: HygieneObservation, make: Callable[[], Call], subject: Subject, desk: Desk
) -> HygieneObservation:
    """The facts with what seemed to be state as chance, if forward draws: from a generator that it keeps and seeds."""
    drawn = _drawn(make, subject, desk)
    if drawn is None or not draws(drawn):
        return facts
    return replace(
        facts,
        nondeterministic=facts.state_effects,
        state_effects=(),
        drawing=drawn.source,
        drawn_with=drawn.name,
    )


TRIED_IN_EVAL = 4
"""Refused inputs that are tried once more where the model is in train mode."""
TRAINING = ("train_modules", "train_module_count")
"""Known before `force-eval` was applied."""


def observe_eager(cases: Sequence[ControlCase], subject: Subject, file: ReferenceFile, desk: Desk) -> Eager:
    """Run the eager model once on every control input, in order, on one instance."""
    answers = ask_eager(
        cases, module_runner(subject.module, {}), subject.parameters, subject.contract, file=file, desk=desk
    )
    first = next(iter(answers.references.values()), None)
    eager = Eager(
        references=answers.references,
        outputs=describe_outputs(first.leaves) if first else (),
        names=answers.names,
        broken=_of_training(answers, cases, subject),
    )
    desk.channel.set("outputs", eager.outputs)
    desk.channel.set("broken", eager.broken)
    desk.channel.set("contrasts", _contrasts(cases, eager.references))
    desk.channel.set("golden", _golden(cases, eager.references, subject.contract))
    return eager


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What one instance returned at some control inputs."""

    references: dict[str, Reference]
    broken: tuple[PromiseBroken, ...]
    names: dict[str, str]


def ask_eager(
    cases: Sequence[ControlCase],
    run: Runner,
    parameters: Sequence[Parameter],
    contract: ModelContract,
    *,
    file: ReferenceFile,
    desk: Desk,
) -> Answers:
    """Run an eager instance on these control inputs, in order; its outputs under the contract's names."""
    references: dict[str, Reference] = {}
    broken: list[PromiseBroken] = []
    names: dict[str, str] = {}
    for case in cases:
        desk.channel.at("eager", case=case.name)
        try:
            leaves = run(bind(case.make(), parameters))
        except BaseException as error:  # noqa: BLE001 - whatever forward raises is an observation
            broken.append(replace(_refusal(error, case, desk), flat_masks=flat_masks(contract, case)))
            continue
        # By the first answer, so that an output has one name at all inputs.
        names = names or contract_names(leaves, contract.outputs)
        leaves = rename(leaves, names)
        messages = broken_promises(describe_outputs(leaves), contract.outputs, case.sizes)
        broken += [PromiseBroken(case=case.name, message=message) for message in messages]
        references[case.name] = file.reference(case.name, leaves)
    return Answers(references=references, broken=tuple(broken), names=names)


def _of_training(answers: Answers, cases: Sequence[ControlCase], subject: Subject) -> tuple[PromiseBroken, ...]:
    """What was broken, with what eval mode would not refuse marked: such as a batch norm's single row."""
    refused = [case for case in cases if case.name not in answers.references]
    if not refused or not subject.hygiene.train_modules or subject.hygiene.forced_eval:
        return answers.broken
    tried = refused[:TRIED_IN_EVAL]
    with contextlib.suppress(Exception):  # without a copy, nothing is known of its eval mode
        run = module_runner(subject.twin().eval(), {})
        taken = {case.name for case in tried if attempt(partial(_call, run, case, subject)) is not None}
        # Those that are not tried are of the same kind, if all that are tried are.
        if len(taken) == len(tried):
            taken = {case.name for case in refused}
        return tuple(replace(each, of_training=each.case in taken) for each in answers.broken)
    return answers.broken


def _call(run: Runner, case: ControlCase, subject: Subject) -> tuple[Leaf, ...]:
    return run(subject.call(case))


def _refusal(error: BaseException, case: ControlCase, desk: Desk) -> PromiseBroken:
    failure = desk.failure(error, "eager", case.name)
    return PromiseBroken(case=case.name, message=f"{failure.type}: {failure.message}", source=failure.source)


def _contrasts(cases: Sequence[ControlCase], references: Mapping[str, Reference]) -> tuple[Contrast, ...]:
    spread = [case.name for case in cases if case.family not in FLAT_FAMILIES and case.name in references]
    return contrasts((name, references[name].leaves) for name in spread)


def _golden(
    cases: Sequence[ControlCase], references: Mapping[str, Reference], contract: ModelContract
) -> list[CaseResult]:
    return [
        compare_case(
            case.name,
            case.expected,
            _picked(references[case.name].leaves, case.expected),
            _golden_axis(case, contract),
        )
        for case in cases
        if case.expected is not None and case.name in references
    ]


def _golden_axis(case: ControlCase, contract: ModelContract) -> int | None:
    own = None if case.golden is None else contract.controls.golden[case.golden].tolerance.axis
    return contract.tolerance.axis if own is None else own


def _picked(leaves: Sequence[Leaf], expected: Sequence[Leaf]) -> tuple[Leaf, ...]:
    """The eager leaves that the golden file speaks of, in its order."""
    by_name = {leaf.name: leaf for leaf in leaves}
    return tuple(by_name[leaf.name] for leaf in expected if leaf.name in by_name)
