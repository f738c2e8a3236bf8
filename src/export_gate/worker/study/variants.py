"""Assign control inputs to exports: the main one, and one per `separate` size; each export serves its targets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from export_gate.wall.contract import ModelContract, Target, target_key
from export_gate.wall.observation import DimFound, Failure
from export_gate.wall.targets import is_run_on
from export_gate.worker.controls.basis import packs_rows
from export_gate.worker.controls.build import reference_call
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.controls.specs import tensor_leaves
from export_gate.worker.export.affine import is_affine_graph
from export_gate.worker.export.axes import found_dims
from export_gate.worker.export.guard_lines import GuardLine
from export_gate.worker.export.program import Exported, export_program, in_contract_words
from export_gate.worker.export.traces import shorten_traces
from export_gate.worker.model import hygiene
from export_gate.worker.model.reference import to_compare
from export_gate.worker.model.twin import twin_of
from export_gate.worker.process.collection import uncollected
from export_gate.worker.process.integrity import guarded
from export_gate.worker.process.stages import Desk, StageFailed
from export_gate.worker.study.conversions import conversions_begun
from export_gate.worker.study.further import Asked, Further
from export_gate.worker.study.handed_in import existing_artifact
from export_gate.worker.study.mask_places import axes_of_outputs
from export_gate.worker.study.masks import Masks
from export_gate.worker.study.probing import Probing
from export_gate.worker.study.records import Export, Study, Variant
from export_gate.worker.study.refused_guard import described, refused_guard
from export_gate.worker.study.trial_exports import is_about_sizes, trial_exports
from export_gate.worker.study.verify import Verification, verify_target
from export_gate.worker.targets.base import Context
from export_gate.worker.targets.metadata import contract_metadata

EachTarget = Callable[[Study, Verification, Desk], None]
"""Further work on one target of one export after it was verified."""


def observe_variants(study: Study, desk: Desk, each: EachTarget | None = None) -> None:
    """Export and verify each variant.

    After a death in one target this is done again without the targets in `job.skip`; their exports are made all the
    same, since what is found about the dims is one fact for all exports.
    """
    found: list[DimFound] = []
    further = Further(study=study, desk=desk)
    masks = masks_in(study)
    for variant in variants(study.contract, study.trial.cases):
        targets = [t for t in study.contract.targets if target_key(t.name, variant.separate) not in study.job.skip]
        export = _export(study, variant, found, desk)
        base = Path(study.job.base)
        ready = [t for t in targets if export is not None or existing_artifact(t, base) is not None]
        asked = further.asked_by(export, variant) if ready else Asked()
        works = [_verification(study, target, variant, export, asked=asked, masks=masks) for target in ready]
        made = [(w.context, w.target) for w in works if existing_artifact(w.target, base) is None]
        with conversions_begun(made) as convert:
            for work in works:
                verify_target(replace(work, convert=convert), desk)
                if each is not None:
                    each(study, work, desk)


def run_on(target: Target, cases: tuple[ControlCase, ...]) -> tuple[ControlCase, ...]:
    """Without other layouts of the same values where the target copies its inputs, unless there is nothing else."""
    return tuple(case for case in cases if is_run_on(target.kind, case.family)) or cases


def masks_in(study: Study) -> Masks:
    """The object that finds out about masks once a difference needs it."""
    sizes = {case.name: case.sizes for case in study.trial.cases}
    references = [(sizes[name], reference) for name, reference in study.eager.references.items()]
    return Masks(
        contract=study.contract, laboratory=study.laboratory(), axes=axes_of_outputs(study.contract, references)
    )


def variants(contract: ModelContract, cases: Sequence[ControlCase]) -> tuple[Variant, ...]:
    """The main export, which is always there, and one for each separate size, or sizes, that cases have."""
    # The main export comes first and exists even if no case has its sizes.
    grouped: dict[tuple[tuple[str, int], ...], list[ControlCase]] = {(): []}
    for case in cases:
        key = tuple((dim.name, size) for dim in contract.dims if (size := case.sizes.get(dim.name)) in dim.separate)
        grouped.setdefault(key, []).append(case)
    return tuple(Variant(separate=dict(key), cases=tuple(members)) for key, members in grouped.items())


def _export(study: Study, variant: Variant, found: list[DimFound], desk: Desk) -> Export | None:
    """The program that the targets share; None if no target needs one or the export failed."""
    targets = [t for t in study.contract.targets if existing_artifact(t, Path(study.job.base)) is None]
    if not targets:
        return None
    noted: list[GuardLine] = []
    try:
        with desk.stage("export"):
            export = _export_fresh(study, variant, desk, noted)
            exported = export.exported
            found.extend(found_dims(exported.program, exported.axes, study.contract))
            desk.channel.set("dims", found)
            if not variant.separate:
                desk.channel.set("affine", _is_affine(study, variant, exported))
    except StageFailed as ended:
        # Only of an export that failed: its unrolled layers may be the reason.
        desk.channel.set("recurrent", study.recurrent)
        failure = ended.failure
        guard = None
        if is_about_sizes(failure):
            guard = refused_guard(noted, study.contract, study.parameters, variant.separate)
        if guard is not None:
            seen = described(guard, study.contract, variant.separate, desk.roots)
            desk.channel.set("export_guard", seen)
            failure = replace(failure, source=failure.source or seen.source)
        # An unrolled layer is the reason, then, and no other declaration changes that.
        if not variant.separate and not study.recurrent:
            desk.channel.set("export_trials", trial_exports(study, failure, guard))
        _tell_failure(in_contract_words(failure, study.contract), targets, variant, desk)
        return None
    return export


def _tell_failure(failure: Failure, targets: Sequence[Target], variant: Variant, desk: Desk) -> None:
    """The main export's failure is the model's; that of a separate one belongs to each target that it was for."""
    if not variant.separate:
        desk.channel.fail(failure)
        return
    for target in targets:
        key = target_key(target.name, variant.separate)
        desk.channel.set("target", target.name, target=key)
        desk.channel.set("separate", variant.separate, target=key)
        desk.channel.fail(failure, target=key)


def _is_affine(study: Study, variant: Variant, exported: Exported) -> bool:
    return _has_basis(study, variant) and is_affine_graph(
        exported.program, by_row=packs_rows(study.contract) is not None
    )


def _has_basis(study: Study, variant: Variant) -> bool:
    return study.trial.has_basis and variant.has_basis


def _export_fresh(study: Study, variant: Variant, desk: Desk, noted: list[GuardLine]) -> Export:
    """Export a new instance, and record how its weights differ from those of the eager one."""
    module = study.factory()
    differs = hygiene.factory_differences(study.weights, hygiene.weight_digest(module))
    if differs:
        desk.channel.set("hygiene", replace(study.hygiene, factory_differs=differs))
    call = reference_call(study.contract, study.parameters, variant.separate)
    # Before the export, which runs the project's forward: that may leave state behind.
    eager = _second_eager(study, module)
    with uncollected():
        exported = guarded(export_program)(
            module, call, study.contract, study.parameters, variant.separate, guards=noted
        )
    shorten_traces(exported.program, desk.roots)
    return Export(exported=exported, eager=eager)


def _second_eager(study: Study, module: torch.nn.Module) -> Callable[[], torch.nn.Module]:
    """A function that returns an eager instance once the module is exported; mostly it shares the exported weights."""
    try:
        twin = twin_of(module)
    except Exception:  # noqa: BLE001 - whatever a project's __deepcopy__ raises
        return study.factory
    return lambda: twin


def _verification(
    study: Study, target: Target, variant: Variant, export: Export | None, *, asked: Asked, masks: Masks
) -> Verification:
    outputs = study.contract.outputs
    folder = Path(study.job.artifacts)  # artifacts/MODEL in the report's folder
    context = Context(
        contract=study.contract,
        program=export.exported if export else None,
        folder=folder / variant.folder,
        input_names=tuple(spec.name or leaf for leaf, spec in tensor_leaves(study.contract)),
        outputs=study.eager.outputs,
        names=study.eager.names,
        metadata=contract_metadata(study.contract, study.trial.observation.sha256),
        has_basis=_has_basis(study, variant),
    )
    return Verification(
        target=target,
        key=target_key(target.name, variant.separate),
        context=context,
        parameters=study.parameters,
        cases=(*run_on(target, variant.cases), *asked.cases),
        references=to_compare({**study.eager.references, **asked.references}, outputs),
        sweep=replace(asked.sweep, references=to_compare(asked.sweep.references, outputs)),
        probing=Probing() if variant.separate else study.probing,
        is_alike=not (study.hygiene.state_effects or study.hygiene.nondeterministic),
        is_steady=not (study.hygiene.state_changed or study.hygiene.nondeterministic),
        masks=masks,
        laboratory=masks.laboratory,
        allowance=study.allowance,
        separate=variant.separate,
        base=Path(study.job.base),
        artifacts=folder,
    )
