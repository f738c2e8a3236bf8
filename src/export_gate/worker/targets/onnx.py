"""The ExportedProgram converted to ONNX by torch's export-based exporter, written, checked and run by ONNX Runtime."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from export_gate.contract import OnnxTarget
from export_gate.worker.affine_onnx import is_affine_onnx
from export_gate.worker.controls.basis import packs_rows
from export_gate.worker.export import Axis, Exported
from export_gate.worker.reference import Runner
from export_gate.worker.targets.base import Context, Loaded
from export_gate.worker.values import Call, Leaf, as_leaf

INLINE_LIMIT_BYTES = 64 * 1024 * 1024
"""Weights above this go to external data: an inline save peaks at four times the weights."""

DEFAULT_OPSET = 20
BFLOAT16 = 16
"""onnx.TensorProto.BFLOAT16."""


def convert(context: Context, options: OnnxTarget) -> Path | None:
    """Convert the program (never the module: that path drops violated Dims in silence), write and check the file."""
    import onnx

    if context.exported is None:
        raise AssertionError("conversion needs an exported program")
    converted = torch.onnx.export(
        context.program,
        context.exported.call.args,
        kwargs=context.exported.call.kwargs,
        dynamo=True,
        opset_version=options.opset or DEFAULT_OPSET,
        verbose=False,
    )
    if converted is None:
        raise RuntimeError("torch.onnx.export returned nothing")
    graph_names(converted.model, context)
    converted.model.metadata_props.update(context.metadata)
    path = context.folder / "model.onnx"
    weights = sum(
        value.const_value.nbytes for value in converted.model.graph.initializers.values() if value.const_value
    )
    converted.save(path, external_data=weights > INLINE_LIMIT_BYTES)
    onnx.checker.check_model(str(path))
    return path


def load(context: Context, options: OnnxTarget, path: Path | None) -> Loaded:
    """An ONNX Runtime session over the file, one thread, without prepacking (which doubles the weights)."""
    import onnx
    import onnxruntime

    if path is None:
        raise AssertionError("onnx always has a file")
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    settings.inter_op_num_threads = 1
    settings.log_severity_level = 3
    settings.graph_optimization_level = _optimization(onnxruntime, options.optimization)
    settings.add_session_config_entry("session.disable_prepacking", "1")
    session = onnxruntime.InferenceSession(str(path), settings, providers=list(options.providers))
    model = onnx.load(str(path), load_external_data=False)
    return Loaded(
        run=session_runner(session, context.input_names),
        facts={
            "opset": _opset(model),
            "providers": ", ".join(session.get_providers()),
            "optimization": options.optimization,
        },
        affine=context.has_basis and is_affine_onnx(model, by_row=packs_rows(context.contract) is not None),
    )


def session_runner(session: Any, input_names: Sequence[str]) -> Runner:
    """Runs a session on the tensor leaves of a call, fed by the contract's names.

    Inputs that the graph does not use are left out; an input of the graph that the contract lacks is ONNX Runtime's
    own error.
    """
    import onnxruntime

    accepted = {value.name for value in session.get_inputs()}
    output_names = [value.name for value in session.get_outputs()]
    needs_ortvalues = any("bfloat16" in v.type for v in (*session.get_inputs(), *session.get_outputs()))

    def run(call: Call) -> tuple[Leaf, ...]:
        tensors = _tensor_leaves(call)
        feeds = {name: tensor for name, tensor in zip(input_names, tensors, strict=True) if name in accepted}
        if needs_ortvalues:
            values = session.run_with_ort_values(None, {k: _ortvalue(onnxruntime, v) for k, v in feeds.items()})
            return tuple(_ort_leaf(name, value) for name, value in zip(output_names, values, strict=True))
        arrays = session.run(None, {name: tensor.detach().cpu().numpy() for name, tensor in feeds.items()})
        return tuple(
            Leaf(name=name, dtype=str(array.dtype), value=array)
            for name, array in zip(output_names, arrays, strict=True)
        )

    return run


def graph_names(model: Any, context: Context) -> None:
    """Give the graph's inputs, outputs and dims the contract's names."""
    for value, name in zip(model.graph.inputs, context.input_names, strict=False):
        value.name = name
    _name_outputs(model, [leaf.name for leaf in context.outputs if leaf.dtype != "None"])
    if context.exported is not None:
        rename_dims(model, dim_names(context.exported))


def dim_names(exported: Exported) -> Callable[[str], str]:
    """A translation of the program's symbolic expressions (`s77`, `8*s5`) to the contract's (`batch`, `side`)."""
    whole = {str(axis.length): str(axis.size) for axis in exported.axes if _is_symbolic(axis)}
    symbols = {text: name for text, name in whole.items() if text.isidentifier()}
    pattern = re.compile(r"\b(" + "|".join(map(re.escape, symbols)) + r")\b") if symbols else None

    def translate(expression: str) -> str:
        if expression in whole:
            return whole[expression]
        return expression if pattern is None else pattern.sub(lambda found: _operand(symbols[found[1]]), expression)

    return translate


def rename_dims(model: Any, translate: Callable[[str], str]) -> None:
    """Rename the symbolic dims of every value in the graph."""
    import onnx_ir

    for value in _values(model.graph):
        if value.shape is None or value.shape.frozen:
            continue
        for index, dim in enumerate(value.shape):
            if isinstance(dim, onnx_ir.SymbolicDim) and dim.value is not None:
                value.shape[index] = onnx_ir.SymbolicDim(translate(dim.value))


def _is_symbolic(axis: Axis) -> bool:
    return isinstance(axis.length, torch.SymInt) and axis.size.dim is not None


def _operand(name: str) -> str:
    return name if name.isidentifier() else f"({name})"


def _values(graph: Any) -> list[Any]:
    values = {id(value): value for value in (*graph.inputs, *graph.outputs)}
    for node in graph:
        values.update((id(value), value) for value in node.outputs)
    return list(values.values())


def _name_outputs(model: Any, names: Sequence[str]) -> None:
    """Name the outputs, through an Identity where one value is returned twice or is an input as well."""
    import onnx_ir

    graph = model.graph
    taken = {id(value) for value in graph.inputs}
    for index, name in enumerate(names[: len(graph.outputs)]):
        value = graph.outputs[index]
        if id(value) in taken:
            node = onnx_ir.node("Identity", [value])
            graph.append(node)
            node.outputs[0].type, node.outputs[0].shape = value.type, value.shape
            graph.outputs[index] = value = node.outputs[0]
        taken.add(id(value))
        _free_name(graph, name, value)
        value.name = name


def _free_name(graph: Any, name: str, owner: Any) -> None:
    """Move another value that happens to have the name out of the way."""
    for value in _values(graph):
        if value.name == name and value is not owner and value not in graph.inputs:
            value.name = f"{name}_inner"


def _tensor_leaves(call: Call) -> list[torch.Tensor]:
    leaves = torch.utils._pytree.tree_leaves((call.args, call.kwargs))  # noqa: SLF001 - torch's own flattening
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def _optimization(onnxruntime: Any, level: str) -> Any:
    levels: Mapping[str, str] = {
        "disable": "ORT_DISABLE_ALL",
        "basic": "ORT_ENABLE_BASIC",
        "extended": "ORT_ENABLE_EXTENDED",
        "all": "ORT_ENABLE_ALL",
    }
    return getattr(onnxruntime.GraphOptimizationLevel, levels[level])


def _opset(model: Any) -> str:
    return ", ".join(f"{opset.domain or 'ai.onnx'} {opset.version}" for opset in model.opset_import)


def _ortvalue(onnxruntime: Any, tensor: torch.Tensor) -> Any:
    tensor = tensor.detach().cpu().contiguous()
    if tensor.dtype is torch.bfloat16:
        bits = tensor.view(torch.int16).numpy()
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, BFLOAT16)
    return onnxruntime.OrtValue.ortvalue_from_numpy(tensor.numpy())


def _ort_leaf(name: str, value: Any) -> Leaf:
    if value.data_type() == "tensor(bfloat16)":
        return as_leaf(name, torch.from_dlpack(value._ortvalue.to_dlpack()))  # noqa: SLF001 - no public way out for bfloat16
    array = value.numpy()
    return Leaf(name=name, dtype=str(array.dtype), value=array)
