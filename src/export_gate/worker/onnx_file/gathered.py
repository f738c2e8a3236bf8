"""Tables of an ONNX file that are indexed by what inputs hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from export_gate.worker.onnx_file.tensors import graph_inputs

OPERATORS = ("Gather", "GatherElements", "GatherND")
"""Operators that read a table, their first input, at the places that their second one says."""
SIZES = ("Shape", "Size")
"""Operators whose results do not depend on what an input holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """A tensor of the file, and the value that says which of its rows are read."""

    tensor: Any
    """onnx.TensorProto."""
    operator: str
    axis: int
    indices: str
    """Name of the value."""
    inputs: tuple[str, ...]
    """The graph's inputs from whose elements it is computed."""
    folder: Path

    def values(self) -> npt.NDArray[Any]:
        """The table."""
        from onnx import numpy_helper

        return np.asarray(numpy_helper.to_array(self.tensor, base_dir=str(self.folder)))

    def unread(self, depth: int) -> npt.NDArray[np.bool_]:
        """One False for each row, or for each entry where single ones are read.

        Args:
            depth: length of the last axis of the indices.
        """
        shape = tuple(self.tensor.dims)
        kept = {"Gather": shape[self.axis : self.axis + 1], "GatherND": shape[:depth]}.get(self.operator, shape)
        return np.zeros(kept, bool)

    def mark(self, read: npt.NDArray[np.bool_], indices: npt.NDArray[Any]) -> None:
        """Note what these indices read; those outside of the table are left out."""
        places: list[npt.NDArray[Any]] = [indices]
        # It reads at its own place along all other axes.
        if self.operator == "GatherElements":
            places = list(np.indices(indices.shape))
            places[self.axis] = indices
        # The last axis of its indices lists a place for each of the table's first axes.
        if self.operator == "GatherND":
            places = list(np.moveaxis(indices, -1, 0))
        flat = [place.reshape(-1) for place in places]
        bounds = zip(flat, read.shape, strict=True)
        inside = np.logical_and.reduce([(place >= -length) & (place < length) for place, length in bounds])
        read[tuple(place[inside] for place in flat)] = True


def gathered_tables(path: Path) -> tuple[Gathered, ...]:
    """The tables that the file reads at places that depend on its inputs' elements; external data stays on disk."""
    import onnx

    model = onnx.load(str(path), load_external_data=False)
    graph = model.graph
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    makers = {name: node for node in graph.node for name in node.output}
    inputs = {value.name for value in graph_inputs(model)}
    found: dict[tuple[str, str, int], Gathered] = {}
    for node in graph.node:
        # With `batch_dims`, an index means another row in each entry of the batch.
        if node.op_type not in OPERATORS or node.input[0] not in tensors or _attribute(node, "batch_dims"):
            continue
        tensor, axis = tensors[node.input[0]], _attribute(node, "axis")
        sources = tuple(dict.fromkeys(_sources(node.input[1], makers, inputs)))
        if sources and tensor.dims:
            found[node.input[0], node.input[1], axis] = Gathered(
                tensor=tensor,
                operator=node.op_type,
                axis=axis % len(tensor.dims),
                indices=node.input[1],
                inputs=sources,
                folder=path.parent,
            )
    return tuple(found.values())


def _attribute(node: Any, name: str) -> int:
    return next((attribute.i for attribute in node.attribute if attribute.name == name), 0)


def _sources(name: str, makers: Mapping[str, Any], inputs: set[str]) -> Iterator[str]:
    """The graph's inputs whose elements lead to a value, the nearest first."""
    waiting, seen = [name], {name}
    while waiting:
        value = waiting.pop(0)
        if value in inputs:
            yield value
        maker = makers.get(value)
        if maker is not None and maker.op_type not in SIZES:
            waiting += [before for before in maker.input if before and before not in seen]
            seen.update(maker.input)
