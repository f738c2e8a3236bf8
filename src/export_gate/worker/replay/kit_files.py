"""Read a kit's tensors, each checked against its digest, and check which files and inputs the ONNX file uses."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from export_gate.wall.conformance import DataSet, KitExport
from export_gate.wall.errors import UserError
from export_gate.wall.request import ReplayRequest
from export_gate.worker.leaves.values import Leaf
from export_gate.worker.onnx_file.session import external_files
from export_gate.worker.onnx_file.tensors import graph_inputs, read_tensor


def check_graph(path: Path, export: KitExport, request: ReplayRequest) -> None:
    """Compare an ONNX file with the manifest before ONNX Runtime opens it.

    Raises:
        UserError: it is not a model, reads a file that the kit does not list, or has other inputs.
    """
    import onnx

    try:
        model = onnx.load(str(path), load_external_data=False)
    except Exception as error:
        raise UserError(f"{path}: not an ONNX model: {type(error).__name__}") from error
    for location in external_files(model):
        if export.path(location) not in request.kit.files:
            raise UserError(f"{path}: its weights are in {ascii(location)[:120]}, a file that kit.json does not list")
    inputs = tuple(value.name for value in graph_inputs(model))
    if inputs != export.inputs:
        found, wanted = (", ".join(map(ascii, names))[:120] or "none" for names in (inputs, export.inputs))
        raise UserError(f"{path}: its inputs are {found}; kit.json has {wanted}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What one data set holds."""

    inputs: list[Leaf]
    """Under the graph's names."""
    outputs: list[Leaf]
    """Those that are compared, under the contract's names, including non-numeric ones."""
    keep: dict[str, npt.NDArray[np.bool_]]
    """Output -> the elements that are compared, where they are not all."""


def read_set(data_set: DataSet, export: KitExport, request: ReplayRequest) -> Expectation:
    """Read the files of a data set. An output that is None cannot stand in a graph and is not expected of it.

    Raises:
        UserError: a file differs from the manifest or is not a tensor.
    """
    paths = (export.path(data_set.folder, f"input_{number}.pb") for number in range(len(export.inputs)))
    inputs = [_read(path, name, request) for path, name in zip(paths, export.inputs, strict=True)]
    outputs: list[Leaf] = []
    keep: dict[str, npt.NDArray[np.bool_]] = {}
    numbers = {output.name: number for number, output in enumerate(request.kit.numbers)}
    for output in (each for each in request.kit.outputs if each.is_compared and each.dtype != "None"):
        if not output.is_number:
            outputs.append(Leaf(name=output.name, dtype=output.dtype, value=None))
            continue
        number = numbers[output.name]
        read = _read(export.path(data_set.folder, f"output_{number}.pb"), output.graph_name, request)
        outputs.append(Leaf(name=output.name, dtype=read.dtype, value=read.value, python=output.python))
        part = export.path(data_set.folder, f"compared_{number}.pb")
        if part in request.kit.files:
            keep[output.name] = _places(part, output.graph_name, read, request)
    return Expectation(inputs=inputs, outputs=outputs, keep=keep)


def _places(path: str, tensor: str, output: Leaf, request: ReplayRequest) -> npt.NDArray[np.bool_]:
    """Read which elements of an output are compared."""
    value = _read(path, tensor, request).value
    if value is None or output.value is None or (value.dtype, value.shape) != (np.dtype(bool), output.value.shape):
        raise UserError(f"{Path(request.folder) / path}: expected a bool for each element of the output")
    return value


def _read(name: str, tensor: str, request: ReplayRequest) -> Leaf:
    """Read the tensor in a file; the same bytes are digested and parsed, so they cannot change in between."""
    path = Path(request.folder) / name
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != request.kit.files[name].sha256:
        raise UserError(f"{path}: the file was changed while the kit was replayed")
    try:
        leaf = read_tensor(content)
    except ValueError as error:
        raise UserError(f"{path}: {error}") from error
    if leaf.name != tensor:
        raise UserError(f"{path}: contains the tensor {ascii(leaf.name)[:80]}, expected {ascii(tensor)[:80]}")
    return leaf
