"""One target of one export: convert, load, run on every control input, compare, probe."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from export_gate.wall.contract import ModelContract, Output, Target, Tolerance, cases_folder
from export_gate.wall.diagnosis import ConversionTrial
from export_gate.wall.nodes import GuiltyNode
from export_gate.wall.observation import CaseResult, Failure
from export_gate.wall.tolerance import resolve_tolerance
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.leaves.compare import compare_case
from export_gate.worker.leaves.picture import Gallery
from export_gate.worker.leaves.values import Leaf
from export_gate.worker.model.factory import Parameter, bind
from export_gate.worker.model.reference import Reference, Runner, without_ignored
from export_gate.worker.nodes.stopped import named_node, stopped_node
from export_gate.worker.process.collection import uncollected
from export_gate.worker.process.integrity import guarded
from export_gate.worker.process.stages import Desk, StageFailed
from export_gate.worker.study.allowance import MOST_S, TRIALS_S, Allowance
from export_gate.worker.study.conversions import Convert, convert, decomposed
from export_gate.worker.study.diagnosis import Patient, diagnose
from export_gate.worker.study.excuses import compared
from export_gate.worker.study.handed_in import existing_artifact
from export_gate.worker.study.laboratory import Laboratory
from export_gate.worker.study.masks import Masks
from export_gate.worker.study.probing import Probing
from export_gate.worker.study.rungs import Forms
from export_gate.worker.study.shrinking import Shrinker
from export_gate.worker.study.suspects import Inquiry, Suspect, lax, suspect
from export_gate.worker.study.sweeping import Sweep, run_sweep
from export_gate.worker.study.table_reads import table_reads
from export_gate.worker.study.trial_conversions import Converter, converted_wrong
from export_gate.worker.study.trials import Bench
from export_gate.worker.targets import TARGETS
from export_gate.worker.targets.base import Context, Loaded, describe_artifact

Results = tuple[dict[str, CaseResult], list[Suspect], list[Suspect]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """Everything that is needed to verify one target of one export."""

    target: Target
    key: str
    """Target key of the events."""
    context: Context
    parameters: tuple[Parameter, ...]
    cases: tuple[ControlCase, ...]
    references: Mapping[str, Reference]
    sweep: Sweep
    probing: Probing
    is_alike: bool
    """Whether eager answers alike when it is asked again, as experiments ask it."""
    is_steady: bool
    """Whether a call changes nothing besides: chance and state would pass for rounding."""
    masks: Masks
    laboratory: Laboratory
    """Runs eager again, to find out what excuses a difference."""
    allowance: Allowance
    separate: dict[str, int]
    base: Path
    """Folder of the config, where artifacts that were handed in are looked for."""
    artifacts: Path
    """The model's folder in the report folder."""
    convert: Convert = convert

    @property
    def report(self) -> Path:
        """Folder of the report, to which the paths of the gate's own artifacts are relative."""
        return self.artifacts.parent.parent

    def tolerance(self, dtype: str) -> Tolerance:
        """The tolerance of an output of that dtype."""
        return resolve_tolerance(self.context.contract, self.target.name, dtype)


def verify_target(work: Verification, desk: Desk) -> None:
    """Observe the target, up to its first failed stage."""
    started = time.perf_counter()
    channel, key = desk.channel, work.key
    # At once: if the artifact crashes the process, these are all that is known of the target.
    channel.set("target", work.target.name, target=key)
    channel.set("guards", work.target.guards, target=key)
    channel.set("separate", work.separate, target=key)
    path: Path | None = None
    try:
        path = _artifact(work, desk)
        with desk.stage("load", target=key), uncollected():
            loaded = guarded(TARGETS[work.target.kind].load)(work.context, work.target, path)
        loaded = comparable(loaded, work.context.contract.outputs)
        channel.set("facts", loaded.facts, target=key)
        channel.set("notes", (*loaded.notes, *work.probing.notes), target=key)
        channel.set("affine", loaded.affine, target=key)
        known = {case.name for case in work.cases if case.name in work.references}
        # Begun before the first run, so that the probes' copies have an artifact without a history.
        with work.probing.begun(loaded, known, work.masks) as probes:
            results, suspects, loose = run_cases(work, loaded.run, desk)
            with desk.stage("guards", target=key):
                channel.set("probes", probes(results), target=key)
            swept, more = _run_sweep(work, loaded.run, desk)
        raised = next((result.failure for result in results.values() if result.failure is not None), None)
        if raised is not None:
            channel.set("stopped_at", _named(raised, path, work, desk), target=key)
        if path is not None:
            ran = [case for case in work.cases if case.name in known]
            channel.set("tables", table_reads(work.target, path, work.context, work.laboratory, ran), target=key)
        # All that follows asks eager again, which must answer as it did.
        if work.is_alike:
            inquiry = _inquire(work, [*suspects, *more], loose, loaded.run, desk)
            forms = Forms(context=work.context, target=work.target, path=path, run=loaded.run)
            patient = _patient(work, forms, inquiry, (*results.values(), *swept), is_loose=bool(loose))
            wrong = converted_wrong(diagnose(patient, work.allowance, desk, key))
            if wrong and not patient.is_given:
                # The experiments before may have taken all that was allowed, and this one says what to do.
                least_s = work.allowance.spent_s + TRIALS_S
                channel.set("conversion_trials", _converter(work, wrong).trials(least_s), target=key)
    except StageFailed as ended:
        if ended.failure.stage == "convert":
            stopped = stopped_node(ended.__cause__, desk.roots)
            channel.set("stopped_at", stopped, target=key)
            channel.set("conversion_trials", _trials_after(ended.failure, stopped, work), target=key)
        elif ended.failure.stage == "load":
            channel.set("stopped_at", _named(ended.failure, path, work, desk), target=key)
        channel.fail(ended.failure, target=key)
    finally:
        channel.set("duration_s", time.perf_counter() - started, target=key)


def _named(failure: Failure, path: Path | None, work: Verification, desk: Desk) -> GuiltyNode | None:
    # A file that was handed in was made from another program.
    is_ours = work.context.program is not None and existing_artifact(work.target, work.base) is None
    made_from = partial(decomposed, work.context, work.target) if is_ours else None
    return named_node(failure.message, path, made_from, desk.roots)


def _trials_after(failure: Failure, stopped: GuiltyNode | None, work: Verification) -> tuple[ConversionTrial, ...]:
    if failure.kind != "exception":
        return ()
    return replace(_converter(work), stopped_at=stopped).trials(MOST_S, with_switches=True)


def _converter(work: Verification, first: Collection[str] = ()) -> Converter:
    """The converter of this target; a trial is compared at the inputs of these names before others."""
    return Converter(
        context=work.context,
        target=work.target,
        parameters=work.parameters,
        # False sorts before True, and the sort keeps the order of equals.
        cases=sorted(work.cases, key=lambda case: case.name not in first),
        references=work.references,
        tolerance=work.tolerance,
        masks=work.masks,
        factory=work.laboratory.factory,
        separate=work.separate,
        allowance=work.allowance,
    )


def comparable(loaded: Loaded, outputs: Sequence[Output]) -> Loaded:
    """The artifact without the leaves that are not compared, each with a note."""
    ignored = [output.name for output in outputs if output.leaf == "ignore"]
    if not ignored:
        return loaded
    return replace(
        loaded,
        run=_leaving_out(loaded.run, outputs),
        run_checked=loaded.run_checked and _leaving_out(loaded.run_checked, outputs),
        notes=(*loaded.notes, *(f"output {name!r} is not compared: the contract says `ignore`" for name in ignored)),
    )


def _leaving_out(run: Runner, outputs: Sequence[Output]) -> Runner:
    return lambda call: without_ignored(run(call), outputs)


def _run_sweep(work: Verification, run: Runner, desk: Desk) -> tuple[Sequence[CaseResult], list[Suspect]]:
    limit_s = work.context.contract.timeout_s

    def compare(case: ControlCase, actual: Sequence[Leaf]) -> CaseResult:
        return compared_with(case, work.sweep.references[case.name], actual, work)

    differing, count = run_sweep(work.sweep, run, work.parameters, compare, desk, key=work.key, timeout_s=limit_s)
    for result in differing:
        desk.channel.add("cases", result, target=work.key)
    desk.channel.set("swept", count, target=work.key)
    cases = {case.name: case for case in work.sweep.cases}
    found = [suspect(cases[result.case], result.outputs, work.tolerance) for result in differing]
    return differing, [each for each in found if each is not None]


def _patient(
    work: Verification, forms: Forms, inquiry: Inquiry, results: Sequence[CaseResult], *, is_loose: bool
) -> Patient:
    bench = Bench(contract=work.context.contract, run=forms.run, laboratory=work.laboratory, tolerance=work.tolerance)
    return Patient(
        forms=forms,
        bench=bench,
        shrinker=Shrinker(
            bench=bench,
            program=(lambda: forms.runner("exported-program")) if "exported-program" in forms.names else None,
            masks=work.masks,
            fixed=tuple(work.separate),
            folder=cases_folder(work.artifacts),
            root=work.report,
            name=work.key,
        ),
        cases={case.name: case for case in (*work.sweep.cases, *work.cases)},
        references=inquiry.references,
        results=results,
        noise=inquiry.noise,
        masked=inquiry.masked,
        is_loose=is_loose,
        is_given=existing_artifact(work.target, work.base) is not None,
        separate=work.separate,
        masks=work.masks,
    )


def _inquire(
    work: Verification, suspects: Sequence[Suspect], loose: Sequence[Suspect], run: Runner, desk: Desk
) -> Inquiry:
    """Look for what may excuse differences."""
    inquiry = Inquiry(
        references={**work.sweep.references, **work.references},
        run=run,
        tolerance=work.tolerance,
        masks=work.masks,
        laboratory=work.laboratory,
    )
    if not (suspects or loose) or not work.is_steady:
        return inquiry
    desk.channel.at("compare", target=work.key)
    inquiry.inquire(suspects)
    inquiry.inquire_lax(loose)
    desk.channel.set("masked", inquiry.masked, target=work.key)
    desk.channel.set("noise", inquiry.noise, target=work.key)
    desk.channel.set("size_noise", inquiry.sizes(work.cases), target=work.key)
    return inquiry


def run_cases(work: Verification, run: Runner, desk: Desk) -> Results:
    """Run and compare every control input in order, on this one instance.

    Returns:
        The results by case name, the cases whose values are wrong, and those within a tolerance that cannot tell.
    """
    gallery = Gallery()
    results: dict[str, CaseResult] = {}
    suspects: list[Suspect | None] = []
    loose: list[Suspect | None] = []
    for case in work.cases:
        reference = work.references.get(case.name)
        if reference is None:
            continue  # eager itself refused it: contract-broken
        desk.channel.at("run", target=work.key, case=case.name)
        result, actual = _run_case(case, reference, run, work, desk)
        desk.channel.add("cases", result, target=work.key)
        results[case.name] = result
        # Now, because the artifact's outputs are not kept: a suspect is run again.
        suspects.append(suspect(case, result.outputs, work.tolerance))
        loose.append(lax(case, result.outputs, work.tolerance))
        gallery.look(result, reference.leaves, actual)
        del actual  # free the memory for the next case
    desk.channel.set("pictures", gallery.pictures(), target=work.key)
    return results, [each for each in suspects if each is not None], [each for each in loose if each is not None]


def _run_case(
    case: ControlCase, reference: Reference, run: Runner, work: Verification, desk: Desk
) -> tuple[CaseResult, Sequence[Leaf]]:
    call = bind(case.make(), work.parameters)
    try:
        actual = run(call)
    except BaseException as error:  # noqa: BLE001 - whatever the artifact raises is an observation
        return CaseResult(case=case.name, failure=desk.failure(error, "run", case.name)), ()
    return compared_with(case, reference, actual, work), actual


def compared_with(case: ControlCase, reference: Reference, actual: Sequence[Leaf], work: Verification) -> CaseResult:
    """The artifact's leaves beside eager's, by the elements that the contract compares."""
    axis = tolerance_axis(work.context.contract, work.target)
    leaves = reference.leaves
    shapes = {leaf.name: leaf.value.shape for leaf in leaves if leaf.value is not None}
    return compare_case(case.name, leaves, actual, axis, compared(shapes, case, work.masks))


def _artifact(work: Verification, desk: Desk) -> Path | None:
    """The artifact to load, handed in or converted now."""
    module = TARGETS[work.target.kind]
    path = existing_artifact(work.target, work.base)
    root = work.report if path is None else work.base
    if path is None:
        with desk.stage("convert", target=work.key):
            path = work.convert(work.context, work.target)
    if path is None:
        return None
    with desk.stage("load", target=work.key):  # a damaged file shows itself here first
        artifact = describe_artifact(module.files(path), root)
    desk.channel.set("artifact", artifact, target=work.key)
    return path


def tolerance_axis(contract: ModelContract, target: Target) -> int | None:
    """The axis whose indices are judged separately on this target."""
    own = target.tolerance.axis
    return contract.tolerance.axis if own is None else own
