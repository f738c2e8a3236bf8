"""Inputs that the project draws itself, and values that differ from position to position."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from control_samples import contract, tensor

from export_gate.wall.contract import Controls, Dim, ModelContract
from export_gate.wall.errors import UserError
from export_gate.worker.controls.build import build_control_set, digest
from export_gate.worker.controls.draws import draw, families
from export_gate.worker.controls.intervals import admits
from export_gate.worker.controls.made import with_makers
from export_gate.worker.controls.stream import Stream

ROWS = Dim(name="rows", min=1, max=6)
CODE = """
import numpy as np

def ordered(shape, rng):
    return np.sort(rng.normal(size=shape).astype(np.float32))

def wide(shape, rng):
    return np.zeros(shape, np.float32) + 9

def double(shape, rng):
    return np.zeros(shape)

def short(shape, rng):
    return np.zeros((1, 1), np.float32)

def raising(shape, rng):
    raise KeyError("nothing")

def joint(sizes, rng):
    low = rng.uniform(0, 1, size=sizes["rows"]).astype(np.float32)
    return {"low": low, "high": low + 1}

def strange(sizes, rng):
    return {"middle": np.zeros(sizes["rows"])}
"""


@pytest.fixture
def folder(tmp_path: Path):
    """A project with functions that draw."""
    (tmp_path / "own.py").write_text(CODE, encoding="utf-8")
    return tmp_path


def one(function: str, **fields: object) -> ModelContract:
    """A model with one input that the function draws."""
    return contract(ROWS, x=tensor("float32", "rows", 3, make=f"own.py:{function}", **fields))


def cases(model: ModelContract, base: Path):
    """The control set of the model with its functions loaded."""
    return build_control_set(with_makers(model, base), base).cases


def test_an_input_is_drawn_by_the_project_at_every_size(folder: Path):
    """The function gets each size; the draws differ from each other and are the same in each run."""
    found = cases(one("ordered"), folder)
    assert {case.sizes["rows"] for case in found} >= {1, 2, 5, 6}
    for case in found:
        x = case.make()["x"]
        assert x.shape == (case.sizes["rows"], 3)
        assert torch.equal(x, x.sort().values)
    assert digest(found) == digest(cases(one("ordered"), folder))
    assert len({float(case.make()["x"].flatten()[0]) for case in found}) > 3


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("wide", "input 'x': expected values in [0, 1], got 9 to 9"),
        ("double", "input 'x': expected dtype float32, got float64"),
        ("short", "input 'x': expected shape ["),
        ("raising", "it raised KeyError: 'nothing'"),
    ],
)
def test_what_comes_back_is_checked(function: str, message: str, folder: Path):
    """A message names the function, the sizes and what was wrong."""
    with pytest.raises(UserError) as caught:
        digest(cases(one(function, range=(0, 1)), folder))
    assert str(caught.value).startswith(f"models.m.inputs.x.make: own.py:{function} at rows=")
    assert message in str(caught.value)


def test_inputs_that_depend_on_each_other_are_drawn_together(folder: Path):
    """What the function leaves out is drawn as usual."""
    inputs = {"low": tensor("float32", "rows"), "high": tensor("float32", "rows"), "x": tensor("float32", "rows")}
    model = contract(ROWS, controls=Controls(make="own.py:joint"), **inputs)
    for case in cases(model, folder):
        values = case.make()
        assert torch.equal(values["high"], values["low"] + 1)
        assert values["x"].shape == values["low"].shape


def test_a_joint_draw_of_an_unknown_input_is_refused(folder: Path):
    """The message lists the contract's inputs."""
    model = contract(ROWS, controls=Controls(make="own.py:strange"), x=tensor("float32", "rows"))
    with pytest.raises(UserError, match=r"expected \{input: array\} with inputs among x, got middle"):
        digest(cases(model, folder))


def test_the_gates_own_draws_can_be_left_out(folder: Path):
    """With `generated: false` only draws of the project are tried, at all sizes."""
    model = replace(one("ordered"), controls=Controls(generated=False))
    found = cases(model, folder)
    assert {case.family for case in found} == {"normal"}
    assert {case.sizes["rows"] for case in found} >= {1, 6}
    assert cases(contract(ROWS, controls=Controls(generated=False), x=tensor("float32", "rows")), folder) == ()


def test_each_position_has_its_own_values():
    """Columns with different meanings get their own values in every family, and data is checked against them."""
    spec = tensor("int64", "rows", 2, positions=((0, 5, 7), (0, 1)))
    for family in families(spec):
        values = draw(spec, (40, 2), family, 1, Stream(1, family))
        assert set(values[:, 0].tolist()) <= {0, 5, 7}
        assert set(values[:, 1].tolist()) <= {0, 1}
    assert set(draw(spec, (40, 2), "random", 1, Stream(1))[:, 0].tolist()) == {0, 5, 7}
    assert admits(spec, torch.tensor([[5, 1]])) == ""
    assert admits(spec, torch.tensor([[5, 7]])) == "expected one of 0, 1, got 7 at position 1"
