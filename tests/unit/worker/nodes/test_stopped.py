"""A runtime's message names a node of the file; the program's node behind it knows the user's own words."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
import torch
from onnx import TensorProto, helper
from torch import nn

from export_gate.worker.nodes.stopped import named_node


class Doubled(nn.Module):
    """One operator with a line of its own."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """See the class."""
        return torch.mul(x, 2.0)


def _file(folder: Path, note: str) -> Path:
    node = helper.make_node("Mul", ["x", "x"], ["y"], name="node_mul")
    entry = node.metadata_props.add()
    entry.key, entry.value = "pkg.torch.onnx.fx_node", note
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "y")]
    path = folder / "model.onnx"
    onnx.save(helper.make_model(helper.make_graph([node], "g", value[:1], value[1:])), str(path))
    return path


RUNNING = "Non-zero status code returned while running Mul node. Name:'node_mul' Status Message: no"
LOADING = "Type 'tensor(int32)' of input parameter (x) of operator (Mul) in node (node_mul) is invalid."


LACKING = "Could not find an implementation for Mul(14) node with name 'node_mul'"


@pytest.mark.parametrize("message", [RUNNING, LOADING, LACKING])
def test_the_node_has_the_users_function_line_and_arguments(message: str, tmp_path: Path):
    """Without them a reader has only the name that the converter gave."""
    program = torch.export.export(Doubled(), (torch.ones(2),))
    path = _file(tmp_path, "%mul : [num_users=1] = call_function")
    found = named_node(message, path, lambda: program, (Path(__file__).parent,))

    assert found is not None
    assert (found.name, found.function) == ("mul", "torch.mul")
    assert ("other", "2.0") in found.arguments
    assert found.source is not None
    assert found.source.text == "return torch.mul(x, 2.0)"


def test_nothing_is_said_of_a_node_that_is_not_known(tmp_path: Path):
    """A file of other origin, another node, another message, or no file."""
    program = torch.export.export(Doubled(), (torch.ones(2),))
    path = _file(tmp_path, "made elsewhere")
    assert named_node(RUNNING, path, lambda: program, ()) is None
    assert named_node(RUNNING.replace("node_mul", "other"), path, lambda: program, ()) is None
    assert named_node("no", path, lambda: program, ()) is None
    assert named_node(RUNNING, None, lambda: program, ()) is None
    assert named_node(RUNNING, path, None, ()) is None
