"""What mutations need to know of an ONNX graph: its constants, who reads what, element types and shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Readers = tuple[tuple[int, int], ...]
"""Places of nodes and of their inputs."""

FLOATS: Mapping[int, str] = {1: "float32", 10: "float16", 11: "float64"}
"""onnx.TensorProto.DataType -> NumPy's name, of the floats that NumPy has."""
INT64 = 7
SIZES = ("Shape", "Size")
"""Operators that return sizes."""
ARITHMETIC = frozenset((
    "Add", "Cast", "Concat", "Div", "Gather", "Identity", "Max", "Min", "Mul", "Neg", "ReduceProd", "ReduceSum",
    "Reshape", "Slice", "Squeeze", "Sub", "Unsqueeze", "Where", "Equal", "Greater", "Less", "Mod",
))  # fmt: skip
"""Operators by which sizes are computed from sizes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Anatomy:
    """A graph as it was read."""

    model: Any
    folder: Path
    """Of the file, where large weights may be."""
    tensors: Mapping[str, Any]
    """Initializers and values of `Constant` nodes, by name."""
    readers: Mapping[str, Readers]
    types: Mapping[str, int]
    shapes: Mapping[str, tuple[int | str, ...]]
    """Of values whose rank is known; dims without a size have a name."""
    opset: int

    @classmethod
    def of(cls, model: Any, folder: Path) -> Anatomy:
        """Read a model whose large weights were left in their own files."""
        graph, typed = model.graph, _inferred(model).graph
        readers: dict[str, list[tuple[int, int]]] = {}
        for at, node in enumerate(graph.node):
            for slot, name in enumerate(node.input):
                readers.setdefault(name, []).append((at, slot))
        tensors = {tensor.name: tensor for tensor in graph.initializer}
        tensors |= {node.output[0]: a.t for node in graph.node if node.op_type == "Constant" for a in _values(node)}
        values = [
            value for value in (*typed.value_info, *typed.input, *typed.output) if value.type.HasField("tensor_type")
        ]
        types = {value.name: value.type.tensor_type.elem_type for value in values}
        return cls(
            model=model,
            folder=folder,
            tensors=tensors,
            readers={name: tuple(places) for name, places in readers.items()},
            types=types | {name: tensor.data_type for name, tensor in tensors.items()},
            shapes={value.name: _shape(value) for value in values if value.type.tensor_type.HasField("shape")}
            | {name: tuple(tensor.dims) for name, tensor in tensors.items()},
            opset=next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), 0),
        )

    @property
    def nodes(self) -> Sequence[Any]:
        """The graph's nodes."""
        nodes: Sequence[Any] = self.model.graph.node
        return nodes

    def operator(self, at: int) -> str:
        """The operator of one node."""
        return str(self.nodes[at].op_type)

    def values(self, name: str) -> Array:
        """The values of a constant."""
        from onnx import numpy_helper

        return np.asarray(numpy_helper.to_array(self.tensors[name], base_dir=str(self.folder)))

    def readers_of(self, at: int) -> tuple[str, ...]:
        """Operators that read a node's first output."""
        return tuple(self.operator(reader) for reader, _ in self.readers.get(self.nodes[at].output[0], ()))

    def sizes(self) -> frozenset[str]:
        """Values that are computed from sizes and constants alone."""
        found: set[str] = set()
        for node in self.nodes:
            known = all(not name or name in found or name in self.tensors for name in node.input)
            if node.op_type in SIZES or (node.op_type in ARITHMETIC and known and found & set(node.input)):
                found.update(node.output)
        return frozenset(found)


def _inferred(model: Any) -> Any:
    """The model with the types of all values, as far as onnx can tell."""
    import onnx

    try:
        return onnx.shape_inference.infer_shapes(model)
    except Exception:  # noqa: BLE001 - a file that it cannot infer is mutated by what it says itself
        return model


def _values(node: Any) -> list[Any]:
    return [attribute for attribute in node.attribute if attribute.name == "value"]


def _shape(value: Any) -> tuple[int | str, ...]:
    return tuple(
        dim.dim_value if dim.HasField("dim_value") else dim.dim_param for dim in value.type.tensor_type.shape.dim
    )
