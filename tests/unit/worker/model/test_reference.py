"""Eager's outputs under the contract's names, and the promises they keep or break."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from torch import nn
from worker_samples import Doubled, size

from export_gate.wall.contract import Output
from export_gate.wall.observation import OutputLeaf
from export_gate.wall.promises import broken_promises
from export_gate.worker.leaves.values import Call, Leaf, flatten
from export_gate.worker.model.reference import (
    Work,
    contract_names,
    count_work,
    describe_outputs,
    module_runner,
)


def outputs(*names: str) -> tuple[Output, ...]:
    """Declared outputs of those names."""
    return tuple(Output(name=name) for name in names)


def leaves(value: object) -> tuple[Leaf, ...]:
    """The leaves of what a model returned."""
    return flatten(value)


def promised(name: str, dtype: str | None = None, shape: tuple[str | int, ...] | None = None) -> Output:
    """A declared output."""
    return Output(name=name, dtype=dtype, shape=None if shape is None else tuple(map(size, shape)))


ONE, TWO = torch.ones(2, 3), torch.ones(2)


def test_positions_get_the_declared_names():
    """The elements of a tuple get the contract's names."""
    assert contract_names(leaves((ONE, TWO)), outputs("logits", "scores")) == {
        "output.0": "logits",
        "output.1": "scores",
    }


def test_a_single_tensor_gets_the_declared_name():
    """One tensor gets the name of the one declared output."""
    assert contract_names(leaves(ONE), outputs("logits")) == {"output": "logits"}


def test_keys_of_the_models_own_keep_their_places():
    """A dict's keys in another order than declared are matched by name, not by position."""
    assert contract_names(leaves({"boxes": ONE, "scores": TWO}), outputs("scores", "boxes")) == {}


def test_a_misspelt_key_is_not_taken_by_position():
    """If one declared name is a key of the model, another that is not renames nothing and is reported."""
    found = leaves({"boxes": ONE, "logits": TWO})
    declared = outputs("logits", "boxs")
    assert contract_names(found, declared) == {}
    assert broken_promises(describe_outputs(found), declared, {}) == (
        "eager returned 2 outputs (boxes, logits), the contract declares 2 (logits, boxs)",
    )


def test_another_number_of_outputs_renames_nothing():
    """A contract with more or fewer outputs than eager returns names none of them, and that is reported."""
    declared = outputs("logits")
    assert contract_names(leaves((ONE, TWO)), declared) == {}
    assert broken_promises(describe_outputs(leaves((ONE, TWO))), declared, {}) == (
        "eager returned 2 outputs (output.0, output.1), the contract declares 1 (logits)",
    )


def test_no_declared_outputs_promise_nothing():
    """Without `outputs`, whatever eager returns is right."""
    assert broken_promises(describe_outputs(leaves((ONE, TWO))), (), {}) == ()


def test_kept_promises():
    """Dtype and shape as declared, with the sizes of the case, break no promise."""
    declared = (promised("a", "float32", ("batch", 3)), promised("b", None, ("batch",)), promised("c", "int64", ()))
    assert broken_promises(describe_outputs(leaves({"a": ONE, "b": TWO, "c": 7})), declared, {"batch": 2}) == ()


def test_broken_promises_are_told_one_by_one():
    """Dtype and shape of each output are reported, measured and declared."""
    declared = (promised("a", "float16", ("batch", 4)), promised("b", None, ("2*batch+1",)))
    assert broken_promises(describe_outputs(leaves({"a": ONE, "b": TWO})), declared, {"batch": 2}) == (
        "output 'a' is float32, declared float16",
        "output 'a' has shape [2, 3], declared [2, 4]",
        "output 'b' has shape [2], declared [5]",
    )


def test_outputs_are_described():
    """Names, dtypes and shapes are recorded, also of leaves that are not tensors."""
    assert describe_outputs(leaves({"a": ONE, "b": None, "c": 1.5, "d": "label"})) == (
        OutputLeaf(name="a", dtype="float32", shape=(2, 3)),
        OutputLeaf(name="b", dtype="None", shape=()),
        OutputLeaf(name="c", dtype="float64", shape=()),
        OutputLeaf(name="d", dtype="str", shape=()),
    )


class Drawing(nn.Module):
    """Adds noise of every generator that a seed reaches."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The input and noise."""
        return x + torch.rand(()) + float(np.random.rand()) + random.random()  # noqa: NPY002 - what models use


def test_runs_are_seeded():
    """Two runs of one model draw the same numbers, so that eager and an artifact can be compared."""
    run = module_runner(Drawing(), {})
    first, second = (run(Call(args=(ONE,)))[0].value for _ in range(2))
    assert first is not None
    assert np.array_equal(first, second)


def test_runs_take_no_gradients_and_rename():
    """A run is under no_grad, and its outputs have the contract's names and memory of their own."""

    class Same(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            assert not torch.is_grad_enabled()
            return x

    given = torch.ones(2)
    (leaf,) = module_runner(Same(), {"output": "copy"})(Call(args=(given,)))
    given.zero_()
    assert leaf.name == "copy"
    assert leaf.value is not None
    assert leaf.value.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("module", "given", "flops", "outputs"),
    [
        (nn.Linear(3, 5), torch.ones(2, 3), 2 * 2 * 3 * 5, 10),
        (nn.Conv2d(1, 4, 3, bias=False), torch.ones(2, 1, 8, 8), 2 * 2 * 4 * 9 * 36, 2 * 4 * 36),
        (Doubled(), torch.ones(2), 0, 2),
    ],
)
def test_work_of_one_forward(module: nn.Module, given: torch.Tensor, flops: float, outputs: int):
    """A forward has two operations per multiply-add of matrix products and convolutions; elementwise work is free."""
    assert count_work(module, Call(args=(given,))) == Work(flops=flops, outputs=outputs)
