"""A program that another job exported, run with the calls of a reference whose parameters are of another kind."""

# ruff: noqa: ANN001, D102 - the model is what users write

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
import torch

from export_gate.wall.contract import ConstantSpec, ModelContract, SequenceSpec, Size, TensorSpec, make_target
from export_gate.worker.leaves.values import Call
from export_gate.worker.model.factory import Parameter, bind
from export_gate.worker.targets import pt2
from export_gate.worker.targets.base import Context
from export_gate.worker.targets.calling import rebound

X, A, B = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 5.0]]), torch.tensor([[7.0, 11.0]])
TENSOR = TensorSpec(dtype="float32", shape=(Size(offset=1), Size(offset=2)))
PAIR = SequenceSpec(kind="tuple", items=(TENSOR, TENSOR))


class Net(torch.nn.Module):
    """Takes all by position or by name."""

    def forward(self, x, pair, scale=1.0):
        return x + scale * (pair[0] - pair[1])


def parameters(*kinds: str) -> tuple[Parameter, ...]:
    """A reference's parameters of these kinds."""
    return tuple(
        Parameter(name=name, kind=getattr(inspect.Parameter, kind), required=True)
        for name, kind in zip(("x", "pair", "scale"), kinds, strict=True)
    )


NAMED = parameters("KEYWORD_ONLY", "KEYWORD_ONLY", "KEYWORD_ONLY")
MIXED = parameters("POSITIONAL_OR_KEYWORD", "KEYWORD_ONLY", "KEYWORD_ONLY")
PLACED = parameters("POSITIONAL_ONLY", "POSITIONAL_ONLY", "POSITIONAL_ONLY")


@pytest.fixture(scope="module", params=["by position", "by name"])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file whose program was exported with its inputs given in that way; one of them has another name there."""
    args, kwargs = ((X, (A, B), 2.0), {}) if request.param == "by position" else ((X,), {"scale": 2.0, "pair": (A, B)})
    path = tmp_path_factory.mktemp("files") / "net.pt2"
    torch.export.save(torch.export.export(Net().eval(), args, kwargs=kwargs), path)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("kinds", [NAMED, MIXED, PLACED], ids=["named", "mixed", "placed"])
def test_file_takes_the_calls_of_any_reference(program: Path, kinds: tuple[Parameter, ...]):
    """The values reach the parameters with their names, however they were passed."""
    contract = ModelContract(
        name="m",
        factory="m:make",
        inputs={
            "x": TENSOR,
            "pair": SequenceSpec(kind="tuple", items=(TENSOR, TENSOR)),
            "scale": ConstantSpec(value=2.0),
        },
        targets=(),
    )
    context = Context(
        contract=contract, program=None, folder=program.parent, input_names=("x", "pair.0", "pair.1"), outputs=(),
        names={}, metadata={}, has_basis=False,
    )  # fmt: skip
    loaded = pt2.load(context, make_target("pt2", artifact=program.name), program)
    (leaf,) = loaded.run(bind({"x": X, "pair": (A, B), "scale": 2.0}, kinds))
    assert leaf.value is not None
    assert leaf.value.tolist() == [[-7.0, -10.0]]


def test_other_names_are_taken_in_order():
    """A file may use any names for its inputs."""
    call = Call(args=(1,), kwargs={"b": 2})
    assert rebound(call, ("a", "b"), ("images", "masks"), ()) == Call(args=(1, 2))


def test_an_input_that_the_program_bakes_is_left_out():
    """A constant of the contract may be missing among the file's inputs."""
    call = Call(args=(1, 0.5), kwargs={})
    assert rebound(call, ("a", "scale"), (), ("a",)) == Call(kwargs={"a": 1})


def test_another_number_of_inputs_is_the_programs_to_refuse():
    """No input is dropped by guessing."""
    call = Call(args=(1, 2, 3))
    assert rebound(call, ("a", "b", "c"), ("x", "y"), ()) is call
