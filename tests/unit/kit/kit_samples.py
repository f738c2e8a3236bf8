"""A small kit made by hand: one ONNX file that doubles its input, and data sets for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from export_gate.kit.files import describe_file, list_files
from export_gate.wall.codec import encode
from export_gate.wall.conformance import MANIFEST, DataSet, Kit, KitExport, KitOutput
from export_gate.wall.contract import Tolerance

SETS = 3
DOUBLED = helper.make_node("Add", ["x", "x"], ["y"])


def model(*nodes: onnx.NodeProto, element: int = TensorProto.FLOAT, result: int | None = None) -> onnx.ModelProto:
    """A graph from x to y, both of one axis."""
    given = helper.make_tensor_value_info("x", element, ["n"])
    returned = helper.make_tensor_value_info("y", element if result is None else result, None)
    graph = helper.make_graph(list(nodes), "graph", [given], [returned])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def write_kit(folder: Path, graph: onnx.ModelProto | None = None, **fields: Any) -> Path:
    """A whole and right kit in the folder; `fields` of the manifest are as given."""
    for number in range(SETS):
        place = folder / f"test_data_set_{number}"
        place.mkdir(parents=True)
        x = np.linspace(-1, 1, 2 + number, dtype=np.float32)
        write_tensor(place / "input_0.pb", x, "x")
        write_tensor(place / "output_0.pb", x * 2, "y")
    onnx.save(graph or model(DOUBLED), folder / "model.onnx")
    return list_again(folder, **fields)


def list_again(folder: Path, **fields: Any) -> Path:
    """Write the manifest anew, so that it fits the files as they are now."""
    sets = tuple(DataSet(folder=f"test_data_set_{n}", case=f"normal-{n}@n={n + 2}") for n in range(SETS))
    defaults: dict[str, Any] = {
        "tool_version": "9.9",
        "model": "doubling",
        "verified": True,
        "config_sha256": "c" * 64,
        "controls_sha256": "d" * 64,
        "platform": "Linux",
        "cpu": "AVX2",
        "python": "3.12.1",
        "versions": {"torch": "2.13.0"},
        "providers": ("CPUExecutionProvider",),
        "outputs": (KitOutput(name="y", graph_name="y", dtype="float32", tolerance=Tolerance(atol=1e-5, rtol=1e-5)),),
        "exports": (KitExport(inputs=("x",), data_sets=sets),),
        "files": {name: describe_file(folder / name) for name in list_files(folder) if name != MANIFEST},
    }
    kit = Kit(**{**defaults, **fields})
    (folder / MANIFEST).write_text(json.dumps(encode(kit), indent=1), encoding="utf-8")
    return folder


def write_tensor(path: Path, values: Any, name: str) -> None:
    """A TensorProto as onnx itself writes it."""
    path.write_bytes(numpy_helper.from_array(values, name).SerializeToString())


def edit(folder: Path, change: Callable[[Any], None]) -> None:
    """Change the manifest as JSON."""
    value = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    change(value)
    (folder / MANIFEST).write_text(json.dumps(value), encoding="utf-8")
