"""Inputs at the constants of a program."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from control_samples import contract, tensor

from export_gate.wall.contract import Dim
from export_gate.worker.controls.threshold_rows import threshold_cases
from export_gate.worker.model.thresholds import Threshold

ROWS = Dim(name="n", min=1, max=40)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_rows_hold_a_constant_and_its_neighbours(dtype: str):
    """Each row is at one constant, with the values one step of the element type below and above it, within range."""
    promised = contract(ROWS, x=tensor(dtype, "n", 8, range=(0, 1)))
    cases = threshold_cases(
        promised,
        [Threshold(value=0.3, is_step=False), Threshold(value=1.0, is_step=False), Threshold(value=7.0, is_step=False)],
    )
    assert [case.family for case in cases] == ["threshold-rows"] * 3
    for case in cases:
        x = case.make()["x"]
        bound = torch.tensor([0.3, 1.0], dtype=torch.float64).to(x.dtype)
        for row in x:
            assert min(float((row - b).abs().max()) for b in bound) < 0.01
        assert float(x.max()) <= 1.0
    x = cases[1].make()["x"]
    assert len(x.unique()) > 3


def test_steps_give_their_multiples():
    """A constant that is divided by with rounding gives multiples over the whole range."""
    promised = contract(ROWS, x=tensor("float32", "n", 8, range=(0, 60)))
    x = threshold_cases(promised, [Threshold(value=0.02, is_step=True)])[1].make()["x"].double().numpy()
    assert np.abs(x / 0.02 - np.round(x / 0.02)).max() < 0.01
    assert x.max() - x.min() > 40


def test_integers_are_one_beside_a_constant():
    """An integer input takes the constant and its neighbours."""
    promised = contract(ROWS, ids=tensor("int64", "n", 8, range=(0, 99)))
    ids = threshold_cases(promised, [Threshold(value=50.0, is_step=False)])[1].make()["ids"]
    assert set(ids.flatten().tolist()) == {49, 50, 51}


def test_without_a_constant_in_range_there_are_none():
    """Constants outside the range, masks and listed values need no inputs."""
    far = contract(ROWS, x=tensor("float32", "n", range=(0, 1)), m=tensor("bool", "n"))
    assert (
        threshold_cases(far, [Threshold(value=5.0, is_step=False), Threshold(value=float("inf"), is_step=False)]) == ()
    )
    assert (
        threshold_cases(contract(ROWS, x=tensor("float32", "n", values=(0, 1))), [Threshold(value=1.0, is_step=False)])
        == ()
    )


def test_a_tiny_step_gives_multiples_that_float64_holds():
    """A step such as 1e-30 has more multiples in the range than integers can count."""
    promised = contract(ROWS, x=tensor("float64", "n", 8, range=(-6, 6)))
    x = threshold_cases(promised, [Threshold(value=1e-30, is_step=True)])[1].make()["x"]
    assert 0 < float(x.abs().max()) <= 1e-30 * 2**54


@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_integers_at_the_end_of_their_type_stay_within_it(dtype: str):
    """The largest int64 has no float of its own: one above it must not wrap around to the smallest."""
    largest = torch.iinfo(getattr(torch, dtype)).max
    promised = contract(ROWS, x=tensor(dtype, "n", 8, range=(0, largest)))
    for case in threshold_cases(
        promised, [Threshold(value=float(largest), is_step=False), Threshold(value=2.0**60, is_step=True)]
    ):
        x = case.make()["x"]
        assert int(x.min()) >= 0


def test_steps_may_begin_at_an_offset():
    """Where a constant is added before a value is rounded, all multiples move."""
    promised = contract(ROWS, x=tensor("float64", "n", 8, range=(-3, 3)))
    x = threshold_cases(promised, [Threshold(value=0.5, is_step=True, offset=0.125)])[1].make()["x"]
    assert float((((x - 0.125) / 0.5) - ((x - 0.125) / 0.5).round()).abs().max()) < 1e-9
    assert float(x.max() - x.min()) > 3
