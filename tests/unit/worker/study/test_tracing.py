"""Which graph is examined for an output that differs, and with what it is compared; also for handed-in files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from form_samples import forms_of
from onnx import numpy_helper
from torch import nn
from worker_samples import contract, tensor

from export_gate.wall.contract import Dim, Target, make_target
from export_gate.wall.nodes import NodeTrace
from export_gate.worker.controls.generate import drawn_case
from export_gate.worker.model.factory import Factory, forward_parameters
from export_gate.worker.study.laboratory import Laboratory
from export_gate.worker.study.rungs import Forms
from export_gate.worker.study.tracing import Tracer

pytestmark = pytest.mark.slow

ONNX = make_target("onnx")
CONTRACT = contract({"x": tensor("n", 4, range=(-2, 2))}, Dim(name="n", min=2, max=8), targets=(ONNX,))
CASE = drawn_case(CONTRACT, "normal", 1, {"n": 5})


class Model(nn.Module):
    """A norm of a linear layer, times a number that export fixes if told so."""

    def __init__(self, factor: float = 1.0) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.norm, self.factor = nn.Linear(4, 3), nn.LayerNorm(3), factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map float32[n, 4] to float32[n, 3]."""
        hidden = self.norm(self.layer(x))
        return hidden * (self.factor if torch.compiler.is_exporting() else 1.0)


def _forms(folder: Path, model: Model, target: Target, change: Callable[[Any], None] | None = None) -> Forms:
    return forms_of(model, torch.ones(3, 4), CONTRACT, folder, target, change=change)


def _trace(forms: Forms, *, is_given: bool = False) -> NodeTrace | None:
    """Without a program in the context the gate has exported none, as for a file that was handed in."""
    factory = Factory(make=lambda: Model().eval(), reference="m:make", kwargs={}, base=Path())
    laboratory = Laboratory(factory=factory, parameters=forward_parameters(Model()), names={})
    if is_given:
        forms = replace(forms, context=replace(forms.context, program=None, kept={}))
    tracer = Tracer(forms=forms, laboratory=laboratory, separate={}, roots=(Path(__file__).parent,))
    return tracer.inspect("output", CASE, strict_dtype=False).trace


def _other_epsilon(model: Any) -> None:
    (norm,) = [node for node in model.graph.node if node.op_type == "LayerNormalization"]
    (epsilon,) = [attribute for attribute in norm.attribute if attribute.name == "epsilon"]
    epsilon.f = 0.5


def _other_bias(model: Any) -> None:
    (bias,) = [tensor for tensor in model.graph.initializer if tensor.name == "layer.bias"]
    bias.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(bias) + np.float32([1, 0, 0]), bias.name))


@pytest.mark.slow
@pytest.mark.parametrize("is_given", [False, True])
@pytest.mark.parametrize(
    ("change", "operator"), [(_other_epsilon, "aten.layer_norm.default"), (_other_bias, "aten.linear.default")]
)
def test_an_edited_file_is_compared_with_its_program(
    tmp_path: Path, change: Callable[[Any], None], operator: str, is_given: bool
):
    """Attributes and weights are found; for a file that was handed in, the program is exported now."""
    trace = _trace(_forms(tmp_path, Model(), ONNX, change), is_given=is_given)

    assert trace is not None
    assert trace.guilty is not None
    assert (trace.beside, trace.guilty.operator, trace.origin) == ("program", operator, "introduced")
    assert trace.guilty.source is not None
    assert trace.guilty.source.text == "hidden = self.norm(self.layer(x))"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["onnx", "pt2", "exported-program"])
def test_a_program_that_differs_is_compared_with_eager(tmp_path: Path, kind: str):
    """A file that agrees with its program goes wrong where the program does."""
    trace = _trace(_forms(tmp_path, Model(factor=2.0), make_target(kind)))

    assert trace is not None
    assert trace.guilty is not None
    assert (trace.beside, trace.guilty.operator) == ("eager", "aten.mul.Tensor")


@pytest.mark.slow
def test_an_archive_that_was_handed_in_is_compared_with_eager(tmp_path: Path):
    """Its own program has the nodes."""
    trace = _trace(_forms(tmp_path, Model(factor=2.0), make_target("pt2")), is_given=True)

    assert trace is not None
    assert trace.guilty is not None
    assert trace.guilty.operator == "aten.mul.Tensor"


@pytest.mark.slow
def test_nothing_is_said_of_what_agrees_or_cannot_be_read(tmp_path: Path):
    """Nothing is reported, whatever goes wrong on the way."""
    forms = _forms(tmp_path, Model(), ONNX)
    assert _trace(forms) is None
    assert forms.path is not None
    forms.path.write_bytes(b"not a model")
    assert _trace(forms) is None
