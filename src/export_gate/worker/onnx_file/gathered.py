"""Tables of an ONNX file that a graph input indexes row by row."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

MOVES = frozenset(("Cast", "Expand", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"))
"""Operators that pass the elements of their first input on as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """A tensor of the file, and the graph input whose elements are the numbers of its rows."""

    tensor: Any
    """onnx.TensorProto."""
    input: str
    folder: Path

    @property
    def rows(self) -> int:
        """The length of the table."""
        return int(self.tensor.dims[0])

    def values(self) -> npt.NDArray[Any]:
        """The table."""
        from onnx import numpy_helper

        return np.asarray(numpy_helper.to_array(self.tensor, base_dir=str(self.folder)))


def gathered_tables(path: Path) -> tuple[Gathered, ...]:
    """The tables that `Gather` reads along their first axis, once each; external data stays on disk."""
    import onnx

    graph = onnx.load(str(path), load_external_data=False).graph
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    makers = {name: node for node in graph.node for name in node.output}
    inputs = {value.name for value in graph.input} - tensors.keys()
    found: dict[tuple[str, str], Gathered] = {}
    for node in graph.node:
        if node.op_type == "Gather" and node.input[0] in tensors and not _axis(node):
            source = _source(node.input[1], makers)
            if source in inputs:
                table = Gathered(tensor=tensors[node.input[0]], input=source, folder=path.parent)
                found.setdefault((node.input[0], source), table)
    return tuple(found.values())


def _axis(node: Any) -> int:
    return next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 0)


def _source(name: str, makers: dict[str, Any]) -> str:
    """Where the elements of a value come from."""
    while name in makers and makers[name].op_type in MOVES:
        name = makers[name].input[0]
    return name
