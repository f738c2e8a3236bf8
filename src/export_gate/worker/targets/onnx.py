"""The ExportedProgram converted to ONNX by torch's export-based exporter, written, checked and run by ONNX Runtime."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.export.graph_signature import ConstantArgument, OutputKind

from export_gate.wall.contract import Target
from export_gate.worker.controls.basis import packs_rows
from export_gate.worker.controls.specs import tensor_leaves
from export_gate.worker.leaves.values import Call, Leaf
from export_gate.worker.model.reference import Runner, rename
from export_gate.worker.onnx_file.affine import is_affine_onnx
from export_gate.worker.onnx_file.session import (
    BFLOAT16,
    RENAMED,
    bfloat16_bits,
    external_files,
    has_bfloat16,
    open_session,
    renamed_outputs,
)
from export_gate.worker.onnx_file.tensors import widen_bfloat16
from export_gate.worker.process.integrity import guarded
from export_gate.worker.targets.base import Context, Loaded, absent_notes, with_absent
from export_gate.worker.targets.onnx_names import dim_names, name_inputs, name_outputs, rename_dims
from export_gate.worker.targets.onnx_opset import LOWEST_WRITTEN, lowered
from export_gate.worker.targets.signature import Names, require_dtypes, require_names

INLINE_LIMIT_BYTES = 64 * 1024 * 1024
"""Weights above this go to external data: an inline save peaks at four times the weights."""

EVALUATOR_NODES = 2000
"""The reference evaluator is a loop in Python: larger graphs take too long for an experiment."""
DECOMPOSED = "decomposed"
"""Key of the program as the converter decomposed it, whose node names are the file's value names."""
DEFAULT_OPSET = 20
DTYPES = {
    **{f"tensor({name})": name for name in ("float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "bool")},
    "tensor(float)": "float32",
    "tensor(double)": "float64",
}
"""ONNX Runtime's name of an input's type -> torch's."""


def convert(context: Context, target: Target) -> Path | None:
    """Convert the program (never the module: that path drops violated Dims in silence), write and check the file.

    Raises:
        ValueError: the exporter used another opset than requested, or other inputs; or an operator has no older form.
        Exception: whatever torch.onnx or onnx.checker raise.
    """
    import onnx

    path = context.folder / target.file_name
    _require_tensors(context)
    opset = DEFAULT_OPSET if target.options["opset"] is None else target.option("opset", int)
    program = context.exported.program
    # The exporter leaves every operator whole that it can translate; torch's own table takes those apart as well.
    converted = torch.onnx.export(
        program.run_decompositions() if target.option("decompose", bool) else program,
        context.exported.call.args,
        kwargs=context.exported.call.kwargs,
        dynamo=True,
        optimize=target.option("optimize", bool),
        # The exporter writes nothing older; `lowered` makes that of it.
        opset_version=max(opset, LOWEST_WRITTEN),
        verbose=False,
    )
    if converted is None:
        raise RuntimeError("torch.onnx.export returned nothing")
    _require_opset(converted.model, max(opset, LOWEST_WRITTEN))
    if opset < LOWEST_WRITTEN:
        converted.model = lowered(converted.model, opset)
    if converted.exported_program is not None:
        context.kept[DECOMPOSED] = converted.exported_program
    converted.model.metadata_props.update({**context.metadata, **_give_names(converted.model.graph, context)})
    weights = sum(
        value.const_value.nbytes for value in converted.model.graph.initializers.values() if value.const_value
    )
    converted.save(path, external_data=weights > INLINE_LIMIT_BYTES)
    # By path: as one message, a model may not exceed 2 GiB.
    onnx.checker.check_model(str(path))
    return path


def files(path: Path) -> tuple[Path, ...]:
    """The file and the external data that its weights name."""
    import onnx

    return (path, *(path.parent / name for name in external_files(onnx.load(str(path), load_external_data=False))))


def load(context: Context, target: Target, path: Path | None) -> Loaded:
    """An ONNX Runtime session over the file, one thread, without prepacking (which doubles the weights).

    Raises:
        ValueError: a provider is not available, or the graph has other names or dtypes than the contract.
        Exception: whatever ONNX Runtime raises.
    """
    import onnx

    assert path is not None
    session = open_session(path, target.option("providers", tuple), target.option("optimization", str))
    return opened(context, target, session, onnx.load(str(path), load_external_data=False))


def opened(context: Context, target: Target, session: Any, model: Any) -> Loaded:
    """A session over the model, ready to run.

    Raises:
        ValueError: the graph has other names or dtypes than the contract.
    """
    renamed = renamed_outputs(model)
    require_names(
        Names(
            inputs=context.input_names,
            outputs=[leaf.name for leaf in context.outputs if leaf.dtype != "None"],
            graph_inputs=[value.name for value in session.get_inputs()],
            graph_outputs=[renamed.get(value.name, value.name) for value in session.get_outputs()],
        )
    )
    require_dtypes(
        dict(zip(context.input_names, (spec.dtype for _, spec in tensor_leaves(context.contract)), strict=True)),
        {value.name: dtype for value in session.get_inputs() if (dtype := DTYPES.get(value.type))},
    )
    return Loaded(
        run=with_absent(session_runner(session, context.input_names, renamed), context.outputs),
        facts={
            "opset": ", ".join(f"{opset.domain or 'ai.onnx'} {opset.version}" for opset in model.opset_import),
            "providers": ", ".join(session.get_providers()),
            "optimization": target.option("optimization", str),
        },
        notes=absent_notes(context.outputs)
        + tuple(
            f"output {name!r} is {own!r} in the graph, which has an input of that name" for own, name in renamed.items()
        ),
        affine=context.has_basis and is_affine_onnx(model, by_row=packs_rows(context.contract) is not None),
    )


def session_runner(session: Any, input_names: Sequence[str], renamed: Mapping[str, str]) -> Runner:
    """Runs a session on the tensor leaves of a call, fed by the contract's names.

    Inputs that the graph does not use are left out; `renamed` are the graph's output names -> the contract's.
    """
    import onnxruntime

    accepted = {value.name for value in session.get_inputs()}
    output_names = [value.name for value in session.get_outputs()]
    needs_ortvalues = has_bfloat16(session)

    def run(call: Call) -> tuple[Leaf, ...]:
        tensors = call_tensors(call)
        feeds = {name: tensor for name, tensor in zip(input_names, tensors, strict=True) if name in accepted}
        if needs_ortvalues:
            values = session.run_with_ort_values(None, {k: _ortvalue(onnxruntime, v) for k, v in feeds.items()})
            leaves = [_ort_leaf(name, value) for name, value in zip(output_names, values, strict=True)]
        else:
            arrays = session.run(None, {name: tensor.detach().cpu().numpy() for name, tensor in feeds.items()})
            leaves = [_leaf(name, array) for name, array in zip(output_names, arrays, strict=True)]
        return rename(tuple(leaves), renamed)

    return guarded(run)


def evaluator_runner(path: Path, input_names: Sequence[str]) -> Runner:
    """Runs the file in the ONNX reference evaluator, which is another implementation than ONNX Runtime's, and slow.

    Raises:
        ValueError: the file is too large for that.
    """
    import onnx
    from onnx.reference import ReferenceEvaluator

    # Before the weights are read: those of a large model would be in memory once more.
    size = sum(file.stat().st_size for file in files(path))
    model = onnx.load(str(path), load_external_data=size <= INLINE_LIMIT_BYTES)
    if len(model.graph.node) > EVALUATOR_NODES or size > INLINE_LIMIT_BYTES:
        raise ValueError(f"more than {EVALUATOR_NODES} nodes or {INLINE_LIMIT_BYTES >> 20} MB")
    evaluator = ReferenceEvaluator(model)
    renamed, accepted = renamed_outputs(model), set(evaluator.input_names)

    def run(call: Call) -> tuple[Leaf, ...]:
        feeds = {name: t.detach().cpu().numpy() for name, t in zip(input_names, call_tensors(call), strict=True)}
        values = evaluator.run(None, {name: array for name, array in feeds.items() if name in accepted})
        return rename(tuple(map(_leaf, evaluator.output_names, values)), renamed)

    return run


def _require_tensors(context: Context) -> None:
    """Refuse Python numbers: ONNX returns tensors only, and the exporter fails with "no attribute 'name'"."""
    specs = context.exported.program.graph_signature.output_specs
    returned = [spec.arg for spec in specs if spec.kind is OutputKind.USER_OUTPUT]
    for leaf, argument in zip(context.outputs, returned, strict=False):
        value = getattr(argument, "value", None) if isinstance(argument, ConstantArgument) else None
        if value is not None:
            raise ValueError(
                f"output {leaf.name!r} is the Python {type(value).__name__} {value!r}, which ONNX cannot return: "
                f"return a tensor, such as torch.tensor({value!r})"
            )


def _require_opset(model: Any, wanted: object) -> None:
    """Check the opset: the exporter silently falls back to 18 if it cannot make the requested one (torch 2.13)."""
    made = model.opset_imports.get("")
    if made != wanted:
        raise ValueError(
            f"opset {wanted} was asked for and torch's exporter made opset {made}: it cannot make {wanted}"
        )


def _give_names(graph: Any, context: Context) -> dict[str, str]:
    """Give the graph the contract's names; metadata for outputs that could not have theirs."""
    name_inputs(graph, context.input_names)
    renamed = name_outputs(graph, [leaf.name for leaf in context.outputs if leaf.dtype != "None"])
    rename_dims(graph, dim_names(context.exported.axes))
    return {RENAMED: json.dumps(renamed)} if renamed else {}


def call_tensors(call: Call) -> list[torch.Tensor]:
    """The tensors of a call in order, which is that of the contract's inputs."""
    leaves = torch.utils._pytree.tree_leaves((call.args, call.kwargs))  # noqa: SLF001 - torch's own flattening
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def _leaf(name: str, array: Any) -> Leaf:
    return Leaf(name=name, dtype=str(array.dtype), value=array)


def _ortvalue(onnxruntime: Any, tensor: torch.Tensor) -> Any:
    tensor = tensor.detach().cpu().contiguous()
    if tensor.dtype is torch.bfloat16:
        # NumPy has no bfloat16, so the bits go through a type of the same width.
        bits = tensor.view(torch.int16).numpy()
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, BFLOAT16)
    return onnxruntime.OrtValue.ortvalue_from_numpy(tensor.numpy())


def _ort_leaf(name: str, value: Any) -> Leaf:
    if value.data_type() == "tensor(bfloat16)":
        return Leaf(name=name, dtype="bfloat16", value=widen_bfloat16(bfloat16_bits(value)))
    return _leaf(name, value.numpy())
