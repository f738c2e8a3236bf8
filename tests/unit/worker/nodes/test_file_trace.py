"""A file with a planted fault compared with its own program: the faulty node is found, and no other one."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from onnx import numpy_helper
from planted import Encoder, Fault, Residual, exported, faults, randomised, traced
from torch import nn

from export_gate.wall.nodes import NodeTrace
from export_gate.worker.leaves.values import Call
from export_gate.worker.nodes.file_trace import FileTrace

PLANTED = 15
"""Faults in each network."""


class Small(nn.Module):
    """A norm between two layers."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.norm, self.last = nn.Linear(4, 6), nn.LayerNorm(6), nn.Linear(6, 2)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the scores, and the hidden values before the norm."""
        hidden = self.first(x)
        return self.last(self.norm(hidden)).softmax(-1), hidden


Edit = Callable[[Callable[[Any], None]], FileTrace]


@pytest.fixture(scope="module")
def edited(tmp_path_factory: pytest.TempPathFactory) -> Edit:
    """The network's file, changed as told, beside its program."""
    folder = tmp_path_factory.mktemp("edited")
    program = exported(Small().eval(), torch.ones(3, 4), folder / "m.onnx")

    def edit(change: Callable[[Any], None]) -> FileTrace:
        model = onnx.load(str(folder / "m.onnx"))
        change(model)
        onnx.save(model, folder / "edited.onnx")
        return traced(program, folder / "edited.onnx")

    return edit


def _trace(found: FileTrace, output: int = 0) -> NodeTrace | None:
    torch.manual_seed(1)
    return found.trace("c", Call(args=(torch.randn(5, 4),)), found.graph.outputs[output])


def _other_epsilon(model: Any) -> None:
    (node,) = [node for node in model.graph.node if node.op_type == "LayerNormalization"]
    (epsilon,) = [attribute for attribute in node.attribute if attribute.name == "epsilon"]
    epsilon.f = 0.5


def _other_weight(model: Any) -> None:
    (tensor,) = [tensor for tensor in model.graph.initializer if tensor.name == "first.bias"]
    array = numpy_helper.to_array(tensor).copy()
    array[0] += 1
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


@pytest.mark.slow
def test_the_node_its_line_and_its_error_are_named(edited: Edit):
    """With the expected inputs the node is as wrong, so the error is its own."""
    trace = _trace(edited(_other_epsilon))

    assert trace is not None
    assert (trace.origin, trace.beside, trace.unmapped) == ("introduced", "program", 0)
    guilty = trace.guilty
    assert guilty is not None
    assert (guilty.operator, guilty.module, guilty.module_class) == ("aten.layer_norm.default", "norm", "LayerNorm")
    assert guilty.file_nodes == ("LayerNormalization node_layer_norm",)
    assert guilty.source is not None
    assert guilty.source.text == "return self.last(self.norm(hidden)).softmax(-1), hidden"
    assert guilty.source.path == __file__
    assert guilty.max_abs_diff == pytest.approx(guilty.own_max_abs_diff)
    errors = {point.name: point.error for point in trace.points}
    assert errors["linear"] < 1e-6 < errors["layer_norm"]


def _without_norm(model: Any) -> None:
    norm = next(node for node in model.graph.node if node.op_type == "LayerNormalization")
    for node in model.graph.node:
        node.input[:] = [norm.input[0] if name == norm.output[0] else name for name in node.input]
    model.graph.node.remove(norm)


def test_an_operator_that_the_file_lacks_is_named(edited: Edit):
    """The node after it is wrong with the expected inputs, although it is as it should be."""
    trace = _trace(edited(_without_norm))
    assert trace is not None
    assert trace.guilty is not None
    assert trace.guilty.absent == ("aten.layer_norm.default",)


def test_an_output_before_the_fault_has_no_guilty_node(edited: Edit):
    """Only what leads to the output is examined; an output that agrees has no trace."""
    found = edited(_other_epsilon)

    assert _trace(found, output=1) is None


def test_values_are_compared_in_chunks_under_a_memory_budget(edited: Edit):
    """With room for one value at a time, the result is the same."""
    whole = _trace(edited(_other_weight))
    found = edited(_other_weight)
    found.budget_bytes = 1

    assert _trace(found) == whole
    assert whole is not None
    assert whole.guilty is not None
    assert whole.guilty.module == "first"


def test_a_shape_that_differs_is_found(edited: Edit):
    """A different shape is described in words, because there is no number."""

    def reduced(model: Any) -> None:
        (node,) = [node for node in model.graph.node if node.op_type == "Softmax"]
        node.op_type = "ReduceMax"
        del node.attribute[:]

    trace = _trace(edited(reduced))
    assert trace is not None
    assert trace.guilty is not None
    assert "softmax" in trace.guilty.operator
    assert (trace.guilty.max_abs_diff, trace.guilty.words) == (None, "shape [1, 1], expected [5, 2]")


@pytest.mark.nightly
@pytest.mark.slow(seconds=180)
@pytest.mark.parametrize(
    ("network", "example"), [(Encoder, torch.ones(2, 9, 32)), (Residual, torch.ones(2, 3, 48, 48))]
)
def test_each_planted_fault_is_found_where_it_is(
    network: Callable[[], nn.Module], example: torch.Tensor, tmp_path: Path
):
    """Weights, attributes, operators and constants in a 12-layer encoder and in a residual network: 30 of 30."""
    torch.manual_seed(0)
    program = exported(randomised(network()), example, tmp_path / "m.onnx")
    model = onnx.load(str(tmp_path / "m.onnx"))
    x = torch.randn(3, *example.shape[1:])
    healthy = traced(program, tmp_path / "m.onnx")
    assert healthy.trace("c", Call(args=(x,)), healthy.graph.outputs[0]) is None
    wrong = []
    for fault in itertools.islice(faults(model, seed=3), PLANTED):
        onnx.save(fault.model, tmp_path / "f.onnx")
        found = traced(program, tmp_path / "f.onnx")
        trace = found.trace("c", Call(args=(x,)), found.graph.outputs[0])
        if not _names(found, trace, fault):
            wrong.append((fault.kind, fault.label, trace and replace(trace, points=())))
    assert not wrong


def _names(found: FileTrace, trace: NodeTrace | None, fault: Fault) -> bool:
    """Whether the trace blames the part of the file that holds the changed node, and nothing else."""
    if trace is None or trace.guilty is None or trace.origin != "introduced":
        return False
    return found.graph.label(fault.at) in trace.guilty.file_nodes
