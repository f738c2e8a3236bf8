"""Guards that torch.export leaves in a program, read in the contract's dims."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from worker_samples import contract, tensor

from export_gate.wall.contract import DictSpec, Dim, ModelContract, SequenceSpec
from export_gate.worker.controls.build import reference_sizes, reference_values
from export_gate.worker.export.branches import Guard, guards_in_dims, noted_in_dims, shape_guards
from export_gate.worker.export.guard_lines import GuardLine
from export_gate.worker.export.program import export_program
from export_gate.worker.model.factory import bind, forward_parameters

ROWS = [Dim(name=name, min=2, max=20) for name in ("a", "b", "c")]


class Branching(nn.Module):
    """Doubles its result wherever a condition on the three lengths holds."""

    def forward(self, x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        """float32[a], float32[b], float32[c] to float32[]."""
        a, b, c = x.shape[0], y.shape[0], z.shape[0]
        total = x.sum() + y.sum() + z.sum()
        for condition in (a == b + 5, a + c == 2 * b + 9, a * b == 36, a // b == 3, max(b, c) == 17):
            total = total * 2 if condition else total
        return total


def guards(module: nn.Module, promised: ModelContract, **separate: int) -> dict[str, Guard]:
    """The guards of a model's program by their words."""
    parameters = forward_parameters(module)
    sizes = {**reference_sizes(promised), **separate}
    call = bind(reference_values(promised, sizes), parameters)
    exported = export_program(module, call, promised, parameters, separate)
    return {guard.words: guard for guard in guards_in_dims(exported, promised, parameters)}


@pytest.mark.slow
@pytest.mark.parametrize("strict", [False, True])
def test_guards_are_told_in_the_dims_of_the_contract(strict: bool):
    """Sums, products, quotients and comparisons of dims are written as in the contract, in either mode."""
    inputs = {"x": tensor("a"), "y": tensor("b"), "z": tensor("c")}
    found = guards(Branching(), contract(inputs, *ROWS, strict=strict))
    told = " | ".join(found)
    assert "a == b + 5" in found
    assert "a // b == 3" in found
    assert "a * b == 36" in told or "b * a == 36" in told
    assert "max(b, c) == 17" in told or "max(c, b) == 17" in told
    assert all(set(guard.dims) <= {"a", "b", "c"} for guard in found.values())


def test_a_guard_is_broken_where_eager_takes_the_other_branch():
    """Over arrays of sizes, a guard is broken exactly if the condition holds that was false when it was traced."""
    inputs = {"x": tensor("a"), "y": tensor("b"), "z": tensor("c")}
    guard = guards(Branching(), contract(inputs, *ROWS))["a // b == 3"]
    a, b = (column.reshape(-1) for column in np.meshgrid(np.arange(2, 21), np.arange(2, 21)))
    assert np.array_equal(guard.is_broken({"a": a, "b": b}, len(a)), a // b == 3)
    assert guard.is_broken({"a": 6, "b": 2})[0]


class Rounding(nn.Module):
    """Triples its result wherever a length rounded in one of many ways is another."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """float32[a] to float32[]."""
        a, total = x.shape[0], x.sum()
        for condition in (math.ceil(a / 2) * 2 != a, math.floor(0.3 * a) > 3, a**0.5 > 4):
            total = total * 3 if condition else total
        return total if int(0.7 * a) == 14 else total * 3


def test_rounded_sizes_are_computed_as_python_does():
    """Torch writes roundings of sizes as functions of Python's math; numpy's stand for them over arrays."""
    promised = contract({"x": tensor("a")}, Dim(name="a", min=2, max=40))
    noted: list[GuardLine] = []
    parameters = forward_parameters(Rounding())
    call = bind(reference_values(promised, reference_sizes(promised)), parameters)
    with pytest.raises(Exception, match="Constraints violated"):
        export_program(Rounding(), call, promised, parameters, {}, guards=noted)
    sizes = np.arange(2, 41)
    found = {guard.words: guard for guard in noted_in_dims(noted, promised, parameters)}
    values = {words: guard.is_broken({"a": sizes}, len(sizes)) for words, guard in found.items()}
    truth = {
        "ceil": [math.ceil(a / 2) * 2 != a for a in range(2, 41)],
        "floor": [math.floor(0.3 * a) > 3 for a in range(2, 41)],
        "trunc": [int(0.7 * a) == 14 for a in range(2, 41)],
        "** 0.5": [a**0.5 > 4 for a in range(2, 41)],
    }
    for name, expected in truth.items():
        (broken,) = (array for words, array in values.items() if name in words)
        # A guard is the condition as it was at the reference.
        assert broken.tolist() in (expected, [not each for each in expected]), name


class Nested(nn.Module):
    """A branch on lengths inside containers."""

    def forward(self, pair: tuple[torch.Tensor, torch.Tensor], state: dict[str, torch.Tensor], **more: Any) -> Any:
        """Two lengths that are mostly unequal."""
        total = pair[0].sum() + state["h"].sum() + more["z"].sum()
        total = total * 2 if pair[1].shape[0] == state["h"].shape[0] else total
        return total * 3 if more["z"].shape[0] % 8 == 5 else total


@pytest.mark.slow
def test_containers_derived_axes_and_separate_exports_are_understood():
    """Axes inside containers and `**kwargs`, derived lengths and `mode: auto` are written as in the contract."""
    inputs = {
        "pair": SequenceSpec(kind="tuple", items=(tensor(3), tensor("2*a+1"))),
        "state": DictSpec(items={"h": tensor("b")}),
        "z": tensor("n", "c"),
    }
    dims = [*ROWS[:2], Dim(name="c", min=2, max=20), Dim(name="n", min=2, max=60, mode="auto")]
    found = guards(Nested(), contract(inputs, *dims), c=2)
    assert "n % 8 == 5" in found
    assert [guard.dims for words, guard in found.items() if "n" not in words] == [("a", "b")]


def test_torch_still_keeps_its_guards_there():
    """The private attribute that guards are read from exists; if torch moves it, this test fails."""
    dims = {name: {0: torch.export.Dim(name, min=2, max=20)} for name in ("x", "y", "z")}
    example = torch.ones(5), torch.ones(7), torch.ones(9)
    program = torch.export.export(Branching(), example, dynamic_shapes=dims)
    assert "L['x'].size()[0] != (5 + L['y'].size()[0])" in program._guards_code


def test_a_program_without_readable_guards_has_none():
    """If torch has no such attribute, or something else in it, sizes are found only by running them."""

    class Other:
        _guards_code = (1, 2)

    assert shape_guards(Other()) == ()  # type: ignore[arg-type]
    assert shape_guards(object()) == ()  # type: ignore[arg-type]
