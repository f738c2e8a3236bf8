"""One control input through each form of a model: which agree with eager, which differ, and which cannot be made."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from form_samples import forms_of
from torch import nn
from worker_samples import contract, tensor

from export_gate.wall.contract import Dim, Target, make_target
from export_gate.wall.diagnosis import RungName
from export_gate.wall.tolerance import resolve_tolerance
from export_gate.worker.leaves.values import Call
from export_gate.worker.model.reference import module_runner
from export_gate.worker.study.rungs import Climber, Forms, climb, selecting
from export_gate.worker.targets.base import Context

pytestmark = pytest.mark.slow

ONNX = make_target("onnx")
CONTRACT = contract({"x": tensor("n", 4)}, Dim(name="n", min=2, max=8), targets=(ONNX,))
X = torch.linspace(-2, 2, 12).reshape(3, 4)


class Model(nn.Module):
    """Tanh of a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map float32[n, 4] to float32[n, 2]."""
        return torch.tanh(self.layer(x))


def _forms(folder: Path, target: Target = ONNX, change: Callable[[Any], None] | None = None) -> Forms:
    """The model's own forms, with the file changed as told."""
    return forms_of(Model(), X, CONTRACT, folder, target, change=change)


def _climber(output: str = "output", shift: float = 0.0) -> Climber:
    run = module_runner(lambda x: Model().eval()(x) + shift, {})
    return Climber(
        call=lambda: Call(args=(X.clone(),)),
        expected=run(Call(args=(X,))),
        tolerance=partial(resolve_tolerance, CONTRACT, "onnx"),
        output=output,
    )


def _other_operator(model: Any) -> None:
    (node,) = [node for node in model.graph.node if node.op_type == "Tanh"]
    node.op_type = "Sigmoid"


@pytest.mark.slow
def test_every_form_of_a_sound_model_agrees(tmp_path: Path):
    """The forms go from the exported program to another runtime for the same file."""
    forms = _forms(tmp_path)

    assert {name: climb(forms, name, _climber()).answer for name in forms.names} == dict.fromkeys(
        ("exported-program", "file-unoptimised", "file", "decomposed", "reference-evaluator"), "agrees"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "answer"),
    [("exported-program", "agrees"), ("decomposed", "agrees"), ("file-unoptimised", "differs"), ("file", "differs"),
     ("reference-evaluator", "differs")],
)  # fmt: skip
def test_a_file_that_is_wrong_differs_from_its_first_form_on(tmp_path: Path, name: RungName, answer: str):
    """The answer has the largest difference if there is one."""
    rung = climb(_forms(tmp_path, change=_other_operator), name, _climber())

    assert (rung.answer, rung.dtype) == (answer, "float32")
    assert (rung.max_abs_diff is not None and rung.max_abs_diff > 0.1) == (answer == "differs")


@pytest.mark.slow
def test_only_the_output_that_is_looked_at_counts(tmp_path: Path):
    """Another output that differs does not matter; without a named output, all count."""
    forms = _forms(tmp_path)

    assert climb(forms, "file", _climber(output="another", shift=1.0)).answer == "agrees"
    assert climb(forms, "file", _climber(output="", shift=1.0)).answer == "differs"


@pytest.mark.slow
def test_a_form_that_raises_has_failed_and_one_that_cannot_be_made_was_not_tried(tmp_path: Path):
    """Each answer has its reason."""
    forms = _forms(tmp_path)
    (tmp_path / "model.onnx").write_bytes(b"not a model")
    wrong_size = Climber(
        call=lambda: Call(args=(torch.ones(3, 5),)),
        expected=(),
        tolerance=partial(resolve_tolerance, CONTRACT, "onnx"),
        output="output",
    )

    assert climb(forms, "file", wrong_size).answer == "failed"
    assert climb(forms, "file-unoptimised", _climber()).answer == "not-tried"
    assert climb(forms, "reference-evaluator", _climber()).message


@pytest.mark.slow
def test_the_decomposed_program_is_the_converters_own(tmp_path: Path):
    """It is made again only if no conversion left it."""
    forms = _forms(tmp_path)
    kept = forms.decomposed()
    forms.context.kept.clear()

    assert [node.name for node in kept.graph.nodes] == [node.name for node in forms.decomposed().graph.nodes]


@pytest.mark.slow
def test_each_kind_of_target_has_its_forms(tmp_path: Path):
    """A file without a program has only the file's forms; the exported program has no earlier form."""
    assert _forms(tmp_path, make_target("exported-program")).names == ()
    assert _forms(tmp_path, make_target("pt2")).names == ("exported-program",)
    alone = _forms(tmp_path)
    given = Context(**{
        **{name: getattr(alone.context, name) for name in Context.__dataclass_fields__}, "program": None
    })  # fmt: skip
    names = Forms(context=given, target=ONNX, path=alone.path, run=alone.run).names
    assert names == ("file-unoptimised", "file", "reference-evaluator")


def test_operators_that_choose_are_found():
    """Rounding can change what such operators choose."""
    program = torch.export.export(nn.Softmax(0), (torch.ones(3),))
    assert selecting(program) == ()

    class Choice(nn.Module):
        """Returns the place of the largest."""

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            """See the class."""
            return x.argmax()

    assert selecting(torch.export.export(Choice(), (torch.ones(3),))) == ("argmax",)
    assert selecting(None) == ()
