"""Control inputs to the exports that serve them: the main one, and one per `separate` size; each to its targets."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from export_gate import __version__
from export_gate.codec import encode
from export_gate.contract import Job, ModelContract, Target
from export_gate.observation import DimFound, HygieneObservation
from export_gate.protocol import target_key
from export_gate.worker import hygiene
from export_gate.worker.affine import is_affine_graph
from export_gate.worker.controls.basis import packs_rows
from export_gate.worker.controls.build import reference_sizes, reference_values
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.controls.specs import tensor_leaves
from export_gate.worker.eager import Eager
from export_gate.worker.export import Exported, export_program, found_dims
from export_gate.worker.model import Factory, Parameter, bind
from export_gate.worker.probing import Probing
from export_gate.worker.stages import Desk, StageFailed
from export_gate.worker.targets.base import Context
from export_gate.worker.trial import Trial
from export_gate.worker.verify import Verification, existing_artifact, verify_target


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """What is known once eager has run; the eager instance itself is gone."""

    job: Job
    factory: Factory
    parameters: tuple[Parameter, ...]
    trial: Trial
    eager: Eager
    hygiene: HygieneObservation
    weights: dict[str, str]
    """Digests of eager's parameters and buffers as the factory made them."""
    probing: Probing
    """The calls outside the contract, with eager's answers."""

    @property
    def contract(self) -> ModelContract:
        """The contract that all this is about."""
        return self.job.contract

    @property
    def has_basis(self) -> bool:
        """Whether the affine basis points are among the control inputs."""
        return any(case.group == "affine" for case in self.trial.cases)


def observe_variants(study: Study, desk: Desk) -> None:
    """Export and verify once for each variant that has control inputs."""
    found: list[DimFound] = []
    for separate, cases in variants(study.contract, study.trial.cases):
        targets = [t for t in study.contract.targets if target_key(t.name, separate) not in study.job.skip]
        exported = _export(study, targets, separate, found, desk)
        for target in targets:
            if exported is not None or existing_artifact(target, Path(study.job.base)) is not None:
                verify_target(_verification(study, target, separate, cases, exported), desk)


def variants(
    contract: ModelContract, cases: Sequence[ControlCase]
) -> tuple[tuple[dict[str, int], tuple[ControlCase, ...]], ...]:
    """Separate sizes with their cases; the main export, with none, comes first and is always there."""
    grouped: dict[tuple[tuple[str, int], ...], list[ControlCase]] = {(): []}
    for case in cases:
        key = tuple((dim.name, size) for dim in contract.dims if (size := case.sizes.get(dim.name)) in dim.separate)
        grouped.setdefault(key, []).append(case)
    return tuple((dict(key), tuple(members)) for key, members in grouped.items())


def _export(
    study: Study, targets: Sequence[Target], separate: dict[str, int], found: list[DimFound], desk: Desk
) -> Exported | None:
    """The program that the targets share; None where none needs one or there is none to be had."""
    if all(existing_artifact(target, Path(study.job.base)) is not None for target in targets):
        return None
    try:
        with desk.stage("export"):
            exported = _export_fresh(study, separate, desk)
            found.extend(found_dims(exported, study.contract))
            desk.channel.set("dims", found)
            if not separate:
                desk.channel.set("affine", _is_affine(study, exported))
    except StageFailed as ended:
        if not separate:
            desk.channel.fail(ended.failure)
            return None
        for target in targets:
            desk.channel.set("target", target.name, target=target_key(target.name, separate))
            desk.channel.set("separate", separate, target=target_key(target.name, separate))
            desk.channel.fail(ended.failure, target=target_key(target.name, separate))
        return None
    return exported


def _is_affine(study: Study, exported: Exported) -> bool:
    return study.has_basis and is_affine_graph(exported.program, by_row=packs_rows(study.contract) is not None)


def _export_fresh(study: Study, separate: Mapping[str, int], desk: Desk) -> Exported:
    """Export an instance of its own, and say where it differs from the eager one."""
    module = study.factory()
    differs = hygiene.factory_differences(study.weights, hygiene.weight_digest(module))
    if differs:
        desk.channel.set("hygiene", replace(study.hygiene, factory_differs=differs))
    sizes = {**reference_sizes(study.contract), **separate}
    call = bind(reference_values(study.contract, sizes), study.parameters)
    return export_program(module, call, study.contract, study.parameters, separate)


def _verification(
    study: Study, target: Target, separate: dict[str, int], cases: tuple[ControlCase, ...], exported: Exported | None
) -> Verification:
    folder = Path(study.job.artifacts)
    name = ",".join(f"{dim}={size}" for dim, size in separate.items())
    context = Context(
        contract=study.contract,
        exported=exported,
        folder=folder / name if name else folder,
        input_names=tuple(leaf for leaf, _ in tensor_leaves(study.contract)),
        outputs=study.eager.outputs,
        names=study.eager.names,
        metadata=contract_metadata(study.contract, study.trial.observation.sha256),
        has_basis=study.has_basis,
    )
    return Verification(
        target=target,
        key=target_key(target.name, separate),
        context=context,
        parameters=study.parameters,
        cases=cases,
        references=study.eager.references,
        probing=study.probing if not separate else Probing(),
        separate=separate,
        base=Path(study.job.base),
        artifacts=folder.parent.parent,
    )


def contract_metadata(contract: ModelContract, controls_sha256: str) -> dict[str, str]:
    """The contract as string properties, for artifacts that cannot enforce it themselves."""
    dims = {dim.name: {"min": dim.min, "max": dim.max, "multiple-of": dim.multiple_of} for dim in contract.dims}
    inputs = {
        name: {
            "dtype": spec.dtype,
            "shape": [str(size) for size in spec.shape],
            "range": spec.range,
            "values": spec.values,
            "nonfinite": spec.nonfinite,
        }
        for name, spec in tensor_leaves(contract)
    }
    tolerances: dict[str, object] = {target.name: encode(target.tolerance) for target in contract.targets}
    return {
        "export_gate.version": __version__,
        "export_gate.model": contract.name,
        "export_gate.dims": _json(dims),
        "export_gate.inputs": _json(inputs),
        "export_gate.tolerance": _json({**tolerances, "model": encode(contract.tolerance)}),
        "export_gate.controls_sha256": controls_sha256,
        "export_gate.torch": torch.__version__,
    }


def _json(value: object) -> str:
    return json.dumps(encode(value), sort_keys=True)
