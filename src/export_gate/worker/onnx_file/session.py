"""Open ONNX files in ONNX Runtime, and list the files that belong to them. Without torch, for replay."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

BFLOAT16 = 16
"""onnx.TensorProto.BFLOAT16."""
RENAMED = "export_gate.outputs"
"""Metadata key: JSON of the graph's output names -> the contract's, for those that differ."""
OPTIMIZATIONS: Mapping[str, str] = {
    "disable": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}
"""The contract's names -> those of onnxruntime.GraphOptimizationLevel."""
EXTERNAL_FOLDER = "session.model_external_initializers_file_folder_path"
"""Where weights are that a model given as bytes leaves in files."""


def open_session(path: Path, providers: Sequence[str], optimization: str, *, serialized: bytes | None = None) -> Any:
    """Open a session with one thread and without prepacking (which doubles the weights in memory).

    Args:
        path: the file.
        providers: all of them have to start.
        optimization: one of the contract's names.
        serialized: a changed copy of the file's model, whose weights may be where the file's are.

    Raises:
        ValueError: a provider is not available.
        Exception: any error of ONNX Runtime.
    """
    import onnxruntime

    present = onnxruntime.get_available_providers()
    _require_providers(providers, present, f"onnxruntime {onnxruntime.__version__} has")
    settings = onnxruntime.SessionOptions()
    # No pool of threads: a forked copy, such as that of the probes, would wait for threads that it does not have.
    settings.intra_op_num_threads = 1
    settings.inter_op_num_threads = 1
    # Errors only: warnings about unused initializers and the like would fill the model's log.
    settings.log_severity_level = 3
    settings.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, OPTIMIZATIONS[optimization])
    settings.add_session_config_entry("session.disable_prepacking", "1")
    if serialized is not None:
        settings.add_session_config_entry(EXTERNAL_FOLDER, str(path.resolve().parent))
    given = str(path) if serialized is None else serialized
    session = onnxruntime.InferenceSession(given, settings, providers=list(providers))
    _require_providers(providers, session.get_providers(), "it did not start; the session fell back to")
    return session


def has_bfloat16(session: Any) -> bool:
    """Whether an input or output is bfloat16, which NumPy lacks: such runs use OrtValue."""
    return any("bfloat16" in value.type for value in (*session.get_inputs(), *session.get_outputs()))


def bfloat16_bits(value: Any) -> np.ndarray[Any, np.dtype[np.uint16]]:
    """A copy of a bfloat16 OrtValue's bits; ONNX Runtime 1.32 has no other public way to read them."""
    shape = tuple(value.shape())
    count = int(np.prod(shape, dtype=np.int64))
    raw = ctypes.string_at(value.data_ptr(), 2 * count) if count else b""
    return np.frombuffer(raw, dtype=np.uint16).reshape(shape)


def renamed_outputs(model: Any) -> dict[str, str]:
    """The graph's output names -> the contract's, for those that differ."""
    names: dict[str, str] = json.loads({entry.key: entry.value for entry in model.metadata_props}.get(RENAMED, "{}"))
    return names


def external_files(model: Any) -> tuple[str, ...]:
    """Locations of external data, including that of subgraphs and functions, relative to the model's folder."""
    tensors = [tensor for graph in _graphs(model) for tensor in (*graph.initializer, *_attribute_tensors(graph.node))]
    tensors += [part for g in _graphs(model) for s in g.sparse_initializer for part in (s.values, s.indices)]
    tensors += [tensor for function in model.functions for tensor in _attribute_tensors(function.node)]
    entries = (entry for tensor in tensors for entry in tensor.external_data)
    return tuple(sorted({entry.value for entry in entries if entry.key == "location"}))


def _graphs(model: Any) -> Iterator[Any]:
    waiting = [model.graph]
    waiting += [graph for function in model.functions for graph in _subgraphs(function.node)]
    while waiting:
        graph = waiting.pop()
        yield graph
        waiting += _subgraphs(graph.node)


def _subgraphs(nodes: Sequence[Any]) -> list[Any]:
    attributes = [attribute for node in nodes for attribute in node.attribute]
    return [graph for a in attributes for graph in (*a.graphs, *([a.g] if a.HasField("g") else []))]


def _attribute_tensors(nodes: Sequence[Any]) -> list[Any]:
    attributes = [attribute for node in nodes for attribute in node.attribute]
    return [tensor for a in attributes for tensor in (*a.tensors, *([a.t] if a.HasField("t") else []))]


def _require_providers(wanted: Sequence[str], present: Sequence[str], otherwise: str) -> None:
    """Refuse missing providers: ONNX Runtime only warns and runs on the CPU, which would verify something else."""
    missing = [provider for provider in wanted if provider not in present]
    if missing:
        raise ValueError(f"provider {missing[0]} is not available: {otherwise} {', '.join(present)}")
