"""Write an observed model as a conformance kit: copies of its artifacts, and a data set per control input."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from export_gate.wall.codec import encode
from export_gate.wall.conformance import MANIFEST, ONNX_FILE, DataSet, KitData, KitExport
from export_gate.wall.contract import Job, Target, cases_folder, target_key
from export_gate.wall.errors import UserError
from export_gate.wall.protocol import Event
from export_gate.wall.targets import is_run_on, kind_named
from export_gate.worker.controls.case_file import file_case
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.controls.specs import tensor_leaves
from export_gate.worker.leaves.values import Leaf, flatten
from export_gate.worker.model.factory import bind
from export_gate.worker.model.reference import Reference, module_runner
from export_gate.worker.onnx_file.session import renamed_outputs
from export_gate.worker.onnx_file.tensors import ELEMENT_TYPES, graph_inputs, tensor_bytes
from export_gate.worker.process.channel import Channel
from export_gate.worker.process.stages import Desk
from export_gate.worker.study.engine import observe_model
from export_gate.worker.study.excuses import compared
from export_gate.worker.study.handed_in import existing_artifact
from export_gate.worker.study.masks import Masks
from export_gate.worker.study.records import Study, Variant
from export_gate.worker.study.variants import masks_in, variants
from export_gate.worker.targets import TARGETS


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """The names of an ONNX file's inputs and outputs."""

    inputs: tuple[str, ...]
    graph_names: dict[str, str]
    """The contract's output name -> the graph's, where they differ."""


def write_kit(folder: Path, job: Job, channel: Channel) -> None:
    """Observe the job's model, then write artifacts and data sets to the folder and send what was written."""
    observe_model(job, channel, then=partial(_write, root=folder))


def _write(study: Study, desk: Desk, root: Path) -> None:
    """Raises UserError for what a kit cannot hold, or where it cannot be written."""
    for variant in variants(study.contract, study.trial.cases):
        try:
            data = _write_export(study, variant, root)
        except OSError as error:
            raise UserError(f"{error.filename or root}: cannot be written: {error.strerror or error}") from error
        if data is not None:
            desk.channel.send(Event(op="answer", model=study.contract.name, value=encode(data)))


def _write_export(study: Study, variant: Variant, root: Path) -> KitData | None:
    """Artifacts and data sets of one export; None if it has no ONNX file (what failed is in the observation)."""
    folder = root / variant.folder
    in_kit = [target for target in study.contract.targets if kind_named(target.kind).is_in_kit]
    paths = [(target, _artifact(study, variant, target)) for target in in_kit]
    onnx = next(path for target, path in paths if target.kind == "onnx")
    if not onnx.is_file():
        return None
    for target, path in paths:
        if path.is_file():
            _copy_artifact(target, path, folder, study.contract.name)
    graph = _read_graph(onnx)
    references = dict(study.eager.references)
    cases = [case for case in variant.cases if case.name in references and is_run_on("onnx", case.family)]
    smallest = _smallest(study, variant, next(target.name for target in in_kit if target.kind == "onnx"))
    if smallest is not None:  # of a kit that is written although the model is not verified
        cases.append(smallest)
        references[smallest.name] = _reference(study, smallest)
    sets = tuple(
        DataSet(folder=f"test_data_set_{number}", case=case.name, group=case.group, sizes=dict(case.sizes))
        for number, case in enumerate(cases)
    )
    python: dict[str, None] = {}
    masks = masks_in(study)
    for each, case in zip(sets, cases, strict=True):
        leaves = references[case.name].leaves
        _write_set(folder / each.folder, case, leaves, graph, masks)
        python.update(dict.fromkeys(leaf.name for leaf in leaves if leaf.python))
    export = KitExport(folder=variant.folder, separate=variant.separate, inputs=graph.inputs, data_sets=sets)
    return KitData(export=export, graph_names=graph.graph_names, python=tuple(python))


def _smallest(study: Study, variant: Variant, target: str) -> ControlCase | None:
    """The smallest input at which the ONNX file fails, if the experiments found one."""
    folder, key = cases_folder(Path(study.job.artifacts)), target_key(target, variant.separate)
    files = sorted(folder.glob(f"{key}.smallest*.npz"))
    return replace(file_case(study.contract, folder, files[0].name), name=files[0].stem) if files else None


def _reference(study: Study, case: ControlCase) -> Reference:
    run = module_runner(study.factory(), study.eager.names)
    return Reference.held(case.name, run(bind(case.make(), study.parameters)))


def _artifact(study: Study, variant: Variant, target: Target) -> Path:
    """The path of the artifact that was verified: handed in, or as its target's `convert` names it."""
    handed_in = existing_artifact(target, Path(study.job.base))
    return handed_in or Path(study.job.artifacts) / variant.folder / target.file_name


def _copy_artifact(target: Target, path: Path, folder: Path, model: str) -> None:
    """Copy the artifact's main file under the kit's name, and data files to where the main file looks for them."""
    main = ONNX_FILE if target.kind == "onnx" else target.file_name
    folder.mkdir(parents=True, exist_ok=True)
    for source in TARGETS[target.kind].files(path):
        inside = os.path.relpath(source, path.parent)  # where the main file says that its weights are
        name = main if source == path else inside
        # Names that the kit uses for its own files are refused too.
        if inside.startswith("..") or Path(name).parts[0].startswith((MANIFEST, "test_data_set_")):
            key = f"models.{model}.targets.{target.name}.artifact"
            raise UserError(
                f"{key}: its weights are in {inside!r}, which has no place in a kit",
                "save the file with its weights beside it, e.g. by `onnx.save(..., save_as_external_data=True)`",
            )
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, folder / name)


def _read_graph(path: Path) -> Graph:
    import onnx

    model = onnx.load(str(path), load_external_data=False)
    return Graph(
        inputs=tuple(value.name for value in graph_inputs(model)),
        graph_names={name: own for own, name in renamed_outputs(model).items()},
    )


def _write_set(folder: Path, case: ControlCase, outputs: Sequence[Leaf], graph: Graph, masks: Masks) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    contract = masks.contract
    model, names = contract.name, {path: spec.name or path for path, spec in tensor_leaves(contract)}
    given = {names[leaf.name]: leaf for leaf in flatten(case.make()) if leaf.name in names}
    for number, name in enumerate(graph.inputs):
        if name not in given:
            raise UserError(f"models.{model}: the ONNX file has an input {name!r} that the contract lacks")
        _write_tensor(folder / f"input_{number}.pb", given[name], name, model)
    numbers = [leaf for leaf in outputs if leaf.dtype in ELEMENT_TYPES]
    parts = compared({leaf.name: leaf.value.shape for leaf in numbers if leaf.value is not None}, case, masks)
    for number, leaf in enumerate(numbers):
        name = graph.graph_names.get(leaf.name, leaf.name)
        _write_tensor(folder / f"output_{number}.pb", leaf, name, model)
        if leaf.name in parts:
            part = Leaf(name=leaf.name, dtype="bool", value=parts[leaf.name])
            _write_tensor(folder / f"compared_{number}.pb", part, name, model)


def _write_tensor(path: Path, leaf: Leaf, name: str, model: str) -> None:
    try:
        path.write_bytes(tensor_bytes(leaf, name))
    except ValueError as error:
        raise UserError(f"models.{model}: {leaf.name!r} cannot be put into a kit: {error}") from error
