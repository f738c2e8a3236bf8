"""Failing inputs shrink to the few elements that make them fail, within the contract."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from worker_samples import contract, tensor

from export_gate.wall.contract import Dim, ModelContract
from export_gate.worker.controls.generate import drawn_case
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.study.smaller import Small, shrink, simple_values

N = Dim(name="n", min=2, max=32)


def _shrunk(promised: ModelContract, sizes: dict[str, int], fails: Callable[[dict[str, Any]], bool]) -> Small:
    case = drawn_case(promised, "normal", 1, sizes)
    return _from(promised, case, fails)


def _from(promised: ModelContract, case: ControlCase, fails: Callable[[dict[str, Any]], bool]) -> Small:
    start = Small.of(promised, case)
    return shrink(start, case, (), lambda small: small.is_allowed() and bool(fails(small.values())))


def test_what_fails_everywhere_shrinks_to_the_smallest_size_and_zeros():
    """Nothing about the input matters."""
    found = _shrunk(contract({"x": tensor("n", 3)}, N), {"n": 30}, lambda _: True)

    assert found.sizes == {"n": 2}
    assert found.tensors["x"].tolist() == [[0, 0, 0], [0, 0, 0]]


def test_one_element_that_matters_is_left():
    """The element is rounded as far as it still fails."""
    found = _shrunk(contract({"x": tensor("n", range=(-4, 4))}, N), {"n": 30}, lambda v: (v["x"] > 0.6).any())

    assert sorted(found.tensors["x"].tolist()) == [0, 1]


def test_values_keep_only_the_digits_that_matter():
    """Neither 0 nor 1 nor a whole number fails."""
    case = ControlCase(
        name="c", family="data", group="data", sizes={"n": 2}, make=lambda: {"x": torch.tensor([0.7512, 0.1])}
    )
    found = _from(contract({"x": tensor("n")}, N), case, lambda v: (v["x"] - 0.75).abs().min() < 0.06)

    assert sorted(found.tensors["x"].tolist()) == [0, pytest.approx(0.8)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dim", "least"),
    [
        (N, 13),
        (Dim(name="n", min=3, max=32, multiple_of=8), 16),
        (Dim(name="n", min=2, max=32, separate=(13,)), 14),
        (Dim(name="n", min=2, max=32, mode="static"), 32),
    ],
)
def test_sizes_stay_in_the_declared_range_and_steps(dim: Dim, least: int):
    """Sizes with a separate export belong to another program; a static dim has one size."""
    found = _shrunk(contract({"x": tensor("n")}, dim), {"n": 32}, lambda v: len(v["x"]) >= 13)

    assert found.sizes == {"n": least}


def test_related_inputs_shrink_together():
    """Two axes of one dim, and one of a sum, shrink together."""
    promised = contract({"x": tensor("n", "n"), "y": tensor("2*n+1", dtype="int64", range=(3, 9))}, N)
    found = _shrunk(promised, {"n": 9}, lambda _: True)

    assert found.tensors["x"].shape == (2, 2)
    assert found.tensors["y"].tolist() == [3] * 5


def test_what_the_contract_does_not_admit_is_not_tried():
    """Values stay in range, also in ranges that depend on sizes, in order, and among listed values."""
    promised = contract(
        {
            "a": tensor("n", range=(2, 5)),
            "b": tensor(3, dtype="int64", range=(1, 7), order="strictly-increasing"),
            "c": tensor("n", values=(7, -2)),
        },
        N,
    )
    seen: list[bool] = []
    found = _shrunk(promised, {"n": 8}, lambda v: not seen.append(bool(((v["a"] >= 2) & (v["a"] <= 5)).all())))

    assert all(seen)
    assert found.tensors["a"].tolist() == [2, 2]
    assert found.tensors["b"].diff().min() > 0
    assert set(found.tensors["c"].tolist()) == {-2}


def test_masks_keep_their_values():
    """Masks decide what the other values mean."""
    promised = contract({"x": tensor("n"), "m": tensor("n", dtype="bool", mask="keep")}, N)
    case = ControlCase(
        name="c",
        family="data",
        group="data",
        sizes={"n": 4},
        make=lambda: {"x": torch.ones(4), "m": torch.tensor([True, False, True, True])},
    )
    assert _from(promised, case, lambda _: True).tensors["m"].tolist() == [True, False]


def test_a_nan_that_matters_stays():
    """It is as simple as possible."""
    case = ControlCase(
        name="c", family="data", group="data", sizes={"n": 3}, make=lambda: {"x": torch.tensor([0.3, math.nan, 0.2])}
    )
    found = _from(contract({"x": tensor("n", nonfinite=("nan",))}, N), case, lambda v: v["x"].isnan().any())

    assert sum(map(math.isnan, found.tensors["x"].tolist())) == 1
    assert found.sizes == {"n": 2}


def test_the_simplest_values_are_those_in_range():
    """These are 0 and 1 if they are in range, otherwise the ends."""
    assert simple_values(tensor(1, range=(0, 9), dtype="int64")) == (0, 1)
    assert simple_values(tensor(1, range=(2, 9), dtype="int64")) == (2, 9)
    assert simple_values(tensor(1, dtype="bool")) == (0, 1)
    assert simple_values(tensor(1, values=(5, -3, 4))) == (-3, 4)
