"""Read a kit's tensors, each checked against its digest, and check which files and inputs the ONNX file uses."""

from __future__ import annotations

import hashlib
from pathlib import Path

from export_gate.wall.conformance import DataSet, KitExport
from export_gate.wall.errors import UserError
from export_gate.wall.request import ReplayRequest
from export_gate.worker.leaves.values import Leaf
from export_gate.worker.onnx_file.session import external_files
from export_gate.worker.onnx_file.tensors import read_tensor


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
    # Files of old versions list their weights among the inputs.
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = tuple(value.name for value in model.graph.input if value.name not in weights)
    if inputs != export.inputs:
        found, wanted = (", ".join(map(ascii, names))[:120] or "none" for names in (inputs, export.inputs))
        raise UserError(f"{path}: its inputs are {found}; kit.json has {wanted}")


def read_set(data_set: DataSet, export: KitExport, request: ReplayRequest) -> tuple[list[Leaf], list[Leaf]]:
    """Read inputs under the graph's names, and expected outputs under the contract's, including non-numeric ones.

    Raises:
        UserError: a file differs from the manifest or is not a tensor.
    """
    paths = (export.path(data_set.folder, f"input_{number}.pb") for number in range(len(export.inputs)))
    inputs = [_read(path, name, request) for path, name in zip(paths, export.inputs, strict=True)]
    expected: list[Leaf] = []
    numbers = iter(range(len(request.kit.outputs)))
    for output in request.kit.outputs:
        if not output.is_number:
            expected.append(Leaf(name=output.name, dtype=output.dtype, value=None))
            continue
        path = export.path(data_set.folder, f"output_{next(numbers)}.pb")
        read = _read(path, output.graph_name, request)
        expected.append(Leaf(name=output.name, dtype=read.dtype, value=read.value, python=output.python))
    return inputs, expected


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
