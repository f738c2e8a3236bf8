"""Experiments after a failure: what each output that differs agrees with, and since when it does not.

They run in a forked copy of the process, within the allowance: whatever they do, what was verified stands.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from export_gate.wall.diagnosis import Inspection, Rung, RungName, WeightsCompared
from export_gate.wall.equivalence import faults, is_excused, worst_norm
from export_gate.wall.noise import Noise
from export_gate.wall.observation import CaseResult, Comparison, MaskedComparison
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.controls.sizes import Sizes
from export_gate.worker.model.factory import bind
from export_gate.worker.model.reference import Reference
from export_gate.worker.process.isolated import Isolated
from export_gate.worker.process.stages import Desk
from export_gate.worker.study.allowance import LEAST_GIVEN_S, LEAST_S, Allowance
from export_gate.worker.study.file_weights import compare_weights
from export_gate.worker.study.forks import fork
from export_gate.worker.study.mask_places import masks_of
from export_gate.worker.study.mask_trial import mask_trial
from export_gate.worker.study.masks import Masks
from export_gate.worker.study.rungs import Climber, Forms, climb, selecting
from export_gate.worker.study.shrinking import Shrinker
from export_gate.worker.study.steadiness import steadiness
from export_gate.worker.study.tracing import TRACED, Tracer
from export_gate.worker.study.trials import Bench, changes, size_trial

OUTPUTS = 4
"""Outputs that are looked at, the worst first."""
CASES = 4
"""Failing inputs that are changed."""
LAST: RungName = "reference-evaluator"
"""Slow, so that it comes after what says more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patient:
    """One target with what was observed of it."""

    forms: Forms
    bench: Bench
    cases: Mapping[str, ControlCase]
    references: Mapping[str, Reference]
    results: Sequence[CaseResult]
    noise: Sequence[Noise] = ()
    masked: Sequence[MaskedComparison] = ()
    is_loose: bool = False
    """Values agree only within a tolerance that is too large to mean anything."""
    is_given: bool = False
    """The artifact was handed in."""
    separate: Mapping[str, int] = field(default_factory=dict)
    """Sizes that this export fixes."""
    shrinker: Shrinker | None = None
    masks: Masks | None = None


@dataclass(slots=True, kw_only=True)
class Sick:
    """One output with the inputs at which it differs, the worst first."""

    output: str
    wrong: list[tuple[float, Comparison, ControlCase]] = field(default_factory=list)
    right: list[ControlCase] = field(default_factory=list)


Experiment = Callable[[], Inspection]


def diagnose(patient: Patient, allowance: Allowance, desk: Desk, key: str) -> tuple[Inspection, ...]:
    """Make the experiments that the target's differences ask for, as long as the allowance lasts; what they found."""
    outputs = _sick(patient)
    raised = next((result for result in patient.results if result.failure is not None), None)
    left_s = allowance.left_of(LEAST_GIVEN_S if patient.is_given else LEAST_S)
    if not (outputs or raised or patient.is_loose) or not left_s:
        return ()
    desk.channel.at("compare", target=key)
    with allowance.spending():
        deadline, is_other = time.monotonic() + left_s, False
        if patient.is_given and (outputs or patient.is_loose):
            weights = _weights(patient, deadline)
            desk.channel.set("weights", weights, target=key)
            is_other = weights is not None and weights.differing_count > 0
        tracer = Tracer(
            forms=patient.forms,
            laboratory=patient.bench.laboratory,
            separate=patient.separate,
            roots=desk.roots,
        )
        # With other weights everything differs, so that no other experiment could say why.
        experiments = _traces(tracer, outputs) if is_other else _experiments(patient, tracer, outputs, raised, deadline)
        found = _merged(_run(experiments, deadline))
        desk.channel.set("inspections", found, target=key)
    return found


def _weights(patient: Patient, deadline: float) -> WeightsCompared | None:
    path, factory = patient.forms.path, patient.bench.laboratory.factory
    isolated: Isolated[None, WeightsCompared] = Isolated(
        kind=WeightsCompared,
        call=lambda _: compare_weights(path, patient.forms.target, factory()),
        died=lambda _, __: WeightsCompared(found=0),
        limit_s=max(deadline - time.monotonic(), 1.0),
    )
    (found,) = isolated.each([None])
    return found if found.found else None


def _traces(tracer: Tracer, outputs: Sequence[Sick]) -> Iterator[Experiment]:
    """All that can be said of a file with other weights: where they show first."""
    for sick in outputs[:OUTPUTS]:
        yield from _trace(tracer, sick)


def _trace(tracer: Tracer, sick: Sick) -> Iterator[Experiment]:
    if tracer.forms.target.kind in TRACED:
        _, comparison, case = sick.wrong[0]
        # Along the way another dtype is no fault by itself; it is looked for where the output has one.
        strict = comparison.expected_dtype != comparison.actual_dtype
        yield partial(tracer.inspect, sick.output, case, strict_dtype=strict)


def _experiments(
    patient: Patient, tracer: Tracer, outputs: Sequence[Sick], raised: CaseResult | None, deadline: float
) -> Iterator[Experiment]:
    program = patient.forms.context.program
    selects = selecting(program.program) if program else ()
    if raised is not None and raised.case in patient.references:
        yield from _rungs(patient, patient.forms.names, "", patient.cases[raised.case])
    # What says most for its price comes first: the deadline may end the list anywhere.
    for sick in outputs[:OUTPUTS]:
        worst = sick.wrong[0][2]
        cases = [case for _, _, case in sick.wrong[:CASES]]
        yield partial(changes, patient.bench, cases, sick.output, worst.name)
        expected = patient.references[worst.name].leaves
        if patient.masks is not None and masks_of(patient.bench.contract):
            yield partial(mask_trial, patient.bench, patient.masks, cases, sick.output)
        yield partial(steadiness, patient.bench, worst, expected, sick.output, selects)
        other = _passing_size(sick)
        if other is not None and worst.group == "generated":
            yield partial(size_trial, patient.bench, sick.output, worst.name, worst.sizes, other)
        if sick.right:
            yield partial(fork, patient.bench.laboratory, tracer.roots, sick.output, worst, sick.right)
        first = [name for name in patient.forms.names if name != LAST]
        yield from _rungs(patient, first, sick.output, worst)
        yield from _trace(tracer, sick)
        yield from _rungs(patient, [name for name in patient.forms.names if name == LAST], sick.output, worst)
    if patient.shrinker is not None and outputs:
        yield partial(patient.shrinker.inspect, outputs[0].output, outputs[0].wrong[0][2], deadline)
    elif patient.shrinker is not None and raised is not None and raised.case in patient.references:
        yield partial(patient.shrinker.inspect, "", patient.cases[raised.case], deadline)


def _rungs(patient: Patient, names: Sequence[RungName], output: str, case: ControlCase) -> Iterator[Experiment]:
    climber = Climber(
        call=lambda: bind(case.make(), patient.bench.laboratory.parameters),
        expected=patient.references[case.name].leaves,
        tolerance=patient.bench.tolerance,
        output=output,
    )

    def rung(name: RungName) -> Inspection:
        return Inspection(output=output, case=case.name, rungs=(climb(patient.forms, name, climber),))

    for name in names:
        yield partial(rung, name)


def _run(experiments: Iterator[Experiment], deadline: float) -> tuple[Inspection, ...]:
    """What each experiment found; nothing from one that died, and from those for which no time was left."""
    nothing = Inspection(output="", case="")

    def call(experiment: Experiment) -> Inspection:
        return nothing if time.monotonic() > deadline else experiment()

    isolated = Isolated(
        kind=Inspection, call=call, died=lambda _, __: nothing, limit_s=max(deadline - time.monotonic(), 1.0)
    )
    # One copy takes all, until it dies: what an experiment makes, such as the float64 twin, is there for the next.
    return tuple(found for found in isolated.each(tuple(experiments)) if found.case)


def _merged(found: Sequence[Inspection]) -> tuple[Inspection, ...]:
    """One record for each output."""
    merged: dict[str, Inspection] = {}
    for each in found:
        known = merged.get(each.output)
        merged[each.output] = each if known is None else _joined(known, each)
    return tuple(replace(each, rungs=_ordered(each.rungs)) for each in merged.values())


def _joined(known: Inspection, more: Inspection) -> Inspection:
    return replace(
        known,
        rungs=known.rungs + more.rungs,
        changed=known.changed + more.changed,
        selects=more.selects or known.selects,
        unsettled=max(known.unsettled, more.unsettled),
        near=max(known.near, more.near),
        masks=more.masks or known.masks,
        outside=max(known.outside, more.outside),
        size_trial=more.size_trial or known.size_trial,
        smallest=more.smallest or known.smallest,
        trace=more.trace or known.trace,
        forked_at=more.forked_at or known.forked_at,
    )


ORDER = ("exported-program", "decomposed", "file-unoptimised", "file", "reference-evaluator")


def _ordered(rungs: Sequence[Rung]) -> tuple[Rung, ...]:
    return tuple(sorted(rungs, key=lambda rung: ORDER.index(rung.name)))


def _sick(patient: Patient) -> list[Sick]:
    """Outputs that differ and that nothing excuses."""
    noise = {(each.output, each.case): each for each in patient.noise}
    masked = {(each.kept.output, each.case): each.kept for each in patient.masked}
    found: dict[str, Sick] = {}
    for result in patient.results:
        case = patient.cases.get(result.case)
        if case is None or result.structure is not None or result.case not in patient.references:
            continue
        for comparison in result.outputs:
            place = (comparison.output, result.case)
            sick = found.setdefault(comparison.output, Sick(output=comparison.output))
            # What masks leave of it, if they take anything out.
            excess = _excess(masked.get(place, comparison), noise.get(place), patient)
            if excess is None:
                sick.right.append(case)
            else:
                sick.wrong.append((excess, comparison, case))
    outputs = [sick for sick in found.values() if sick.wrong]
    for sick in outputs:
        sick.wrong.sort(key=lambda one: -one[0])
    return sorted(outputs, key=lambda sick: -sick.wrong[0][0])


def _excess(comparison: Comparison, noise: Noise | None, patient: Patient) -> float | None:
    """How far it is over its tolerance; None if it is within, or excused."""
    tolerance = patient.bench.tolerance(comparison.expected_dtype)
    kinds = faults(comparison, tolerance, "match")
    if not kinds or (kinds[0] == "value" and noise is not None and is_excused(comparison, tolerance, noise)):
        return None
    return worst_norm(comparison, tolerance).ratio if kinds[0] == "value" else math.inf


def _passing_size(sick: Sick) -> Sizes | None:
    """The largest size at which every input agrees; None if there is none."""
    wrong = [case.sizes for _, _, case in sick.wrong]
    right = [case.sizes for case in sick.right if case.sizes and case.sizes not in wrong]
    return max(right, key=lambda sizes: math.prod(sizes.values()), default=None)
