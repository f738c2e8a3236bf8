"""A program beside eager: the node that computes what export fixed."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from export_gate.wall.nodes import NodeTrace
from export_gate.worker.leaves.values import Call
from export_gate.worker.nodes.eager_trace import EagerTrace

X = torch.linspace(-2, 2, 12).reshape(3, 4)


class Scaled(nn.Module):
    """Scales by a number that depends on whether it is exported."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return two outputs, one of which does not see the number."""
        hidden = self.first(x)
        scale = 3.0 if torch.compiler.is_exporting() else 2.0
        scaled = hidden * scale
        return {"hidden": hidden, "out": self.last(scaled).relu()}


class Branching(nn.Module):
    """Takes one step more in eager than when it is exported."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Double what is left."""
        if not torch.compiler.is_exporting():
            x = x.abs() + 1
        return x.exp() * 2


def _trace(module: nn.Module, output: int = 0, budget_bytes: int = 10**6) -> NodeTrace | None:
    program = torch.export.export(module, (X,))
    found = EagerTrace(program=program, roots=(Path(__file__).parent,), budget_bytes=budget_bytes)
    return found.trace(lambda: Call(args=(X.clone(),)), module, output)


def test_the_node_that_reads_a_fixed_number_is_named():
    """The trace has the node's line in the model."""
    trace = _trace(Scaled(), output=1)

    assert trace is not None
    assert trace.guilty is not None
    assert (trace.origin, trace.beside, trace.guilty.operator) == ("introduced", "eager", "aten.mul.Tensor")
    assert trace.guilty.source is not None
    assert trace.guilty.source.text == "scaled = hidden * scale"
    assert (trace.mapped, trace.unmapped) == (4, 0)


def test_an_output_that_agrees_has_no_trace():
    """The number does not affect that output."""
    assert _trace(Scaled(), output=0) is None


def test_operators_of_one_side_alone_are_skipped():
    """The first operator that both sides have and that differs is the one after the branch."""
    trace = _trace(Branching())

    assert trace is not None
    assert trace.guilty is not None
    assert trace.guilty.operator == "aten.exp.default"


def test_values_beyond_the_budget_are_not_compared():
    """Nothing is claimed about such values."""
    assert _trace(Scaled(), output=1, budget_bytes=1) is None


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_precisions_are_compared_by_their_own_rounding(dtype: torch.dtype):
    """A program that computes the same has no trace in any precision."""
    module = nn.Sequential(nn.Linear(4, 4), nn.GELU()).to(dtype)
    program = torch.export.export(module, (X.to(dtype),))
    found = EagerTrace(program=program, roots=())

    assert found.trace(lambda: Call(args=(X.to(dtype),)), module, 0) is None
