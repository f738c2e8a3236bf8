"""Tables of an ONNX file, and which of their rows indices read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from export_gate.worker.onnx_file.gathered import Gathered, gathered_tables

TABLE = np.arange(12, dtype=np.float32).reshape(4, 3)


def tables(folder: Path, *nodes: Any, **weights: np.ndarray) -> tuple[Gathered, ...]:
    """Those of a file with the input `ids`."""
    tensors = [numpy_helper.from_array(values, name) for name, values in {"table": TABLE, **weights}.items()]
    given = helper.make_tensor_value_info("ids", TensorProto.INT64, ["n"])
    returned = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    model = helper.make_model(helper.make_graph(list(nodes), "g", [given], [returned], tensors))
    onnx.save(model, folder / "file.onnx")
    return gathered_tables(folder / "file.onnx")


def node(operator: str, *inputs: str, to: str = "y", **attributes: Any) -> Any:
    """One node."""
    return helper.make_node(operator, list(inputs), [to], **attributes)


@pytest.mark.parametrize(
    ("operator", "axis", "indices", "expected"),
    [
        ("Gather", 0, [[0, 2], [-1, 9]], [True, False, True, True]),
        ("Gather", 1, [1], [False, True, False]),
        ("GatherND", 0, [[1], [3]], [False, True, False, True]),
        ("GatherND", 0, [[0, 0], [3, 2]], [[True, False, False], [False] * 3, [False] * 3, [False, False, True]]),
        (
            "GatherElements",
            0,
            [[0, 3, 1]],
            [[True, False, False], [False, False, True], [False] * 3, [False, True, False]],
        ),
    ],
)
def test_indices_mark_what_they_read(tmp_path: Path, operator: str, axis: int, indices: list[Any], expected: list[Any]):
    """Rows along the axis, places of several axes, or single entries; what is outside of the table reads nothing."""
    attributes = {} if operator == "GatherND" else {"axis": axis}
    (table,) = tables(tmp_path, node(operator, "table", "ids", **attributes))
    assert (table.operator, table.axis, table.inputs) == (operator, axis, ("ids",))
    read = table.unread(np.asarray(indices).shape[-1])
    table.mark(read, np.asarray(indices))
    assert read.tolist() == expected


def test_indices_may_be_computed_but_not_from_sizes_alone(tmp_path: Path):
    """A shifted or bucketed input still says which rows are read; positions do not."""
    shifted = node("Add", "ids", "one", to="more")
    (table,) = tables(tmp_path, shifted, node("Gather", "table", "more"), one=np.array(1))
    assert (table.indices, table.inputs) == ("more", ("ids",))
    assert tables(tmp_path, node("Shape", "ids", to="n"), node("Gather", "table", "n")) == ()
    assert tables(tmp_path, node("Gather", "table", "one"), one=np.array(1)) == ()
