"""Bounds that depend on sizes, values in order, and sizes read off sums."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from control_samples import contract, tensor, with_data
from hypothesis import given
from hypothesis import strategies as st

from export_gate.wall.contract import Dim, Size
from export_gate.wall.errors import UserError
from export_gate.wall.sizes import parse_expression
from export_gate.worker.controls.build import build_control_set
from export_gate.worker.controls.check import solve_sizes
from export_gate.worker.controls.draws import draw, families
from export_gate.worker.controls.generate import values_at
from export_gate.worker.controls.ordering import impossible, order_broken
from export_gate.worker.controls.stream import Stream

SEQ, PAST, CUR = (Dim(name=name, min=1, max=8) for name in ("seq", "past", "cur"))
POSITIONS = tensor("int64", "seq", range=(0, parse_expression("seq-1")))


def test_every_control_input_is_within_the_bounds_of_its_sizes(tmp_path: Path):
    """Indices point into their axis at every size, and reach both of its ends."""
    cases = build_control_set(contract(SEQ, positions=POSITIONS), tmp_path).cases
    assert {case.sizes["seq"] for case in cases} >= {1, 8}
    for case in cases:
        positions = case.make()["positions"]
        assert int(positions.min()) >= 0
        assert int(positions.max()) < case.sizes["seq"]
    ends = {int(case.make()["positions"].max()) for case in cases if case.sizes["seq"] == 8}
    assert 7 in ends


def test_a_size_at_which_the_range_is_0_to_1_has_no_masks_but_its_ends():
    """At two positions the values are 0 and 1, and low and high are still their ends."""
    model = contract(SEQ, positions=POSITIONS)
    low, high = (values_at(model, {"seq": 2}, family, 1)["positions"] for family in ("low", "high"))
    assert (low.tolist(), high.tolist()) == ([0, 0], [1, 1])


def test_probes_know_where_no_value_fits():
    """Without room no position is drawn; a tensor without elements needs none."""
    assert impossible(tensor("int64", 2, range=(0, parse_expression("seq-1"))), {"seq": 0}) == (
        "no value is in the range [0, -1]"
    )
    assert impossible(POSITIONS, {"seq": 0}) == ""


@given(
    order=st.sampled_from(["increasing", "strictly-increasing", "decreasing"]),
    dtype=st.sampled_from(["float32", "float16", "bfloat16", "float64", "int64", "int8", "uint8"]),
    length=st.integers(1, 12),
    seed=st.integers(0, 99),
)
def test_all_families_keep_the_order_and_the_range(order: str, dtype: str, length: int, seed: int):
    """Whatever is drawn is in order along the last axis and within the range."""
    spec = tensor(dtype, 3, length, range=(1, 12), order=order)
    for family in families(spec):
        values = draw(spec, (3, length), family, 1, Stream(seed, family))
        assert order_broken(spec, values) == ""
        assert values.min() >= 1
        assert values.max() <= 12
        assert values.dtype == getattr(torch, dtype)


def test_offsets_start_at_zero():
    """Whole numbers that rise from 0 begin with it; those that fall, or rise from another bound, do not have to."""
    rising = tensor("int64", 6, range=(0, 40), order="increasing")
    assert [int(draw(rising, (6,), "random", 1, Stream(seed))[0]) for seed in range(3)] == [0, 0, 0]
    later = tensor("int64", 6, range=(1, 40), order="increasing")
    assert {int(draw(later, (6,), "random", 1, Stream(seed))[0]) for seed in range(9)} != {1}


def test_allowed_values_can_be_in_strict_order():
    """There are as many different values as places."""
    spec = tensor("float32", 3, values=(-1.0, 0.5, 2.0), order="strictly-increasing")
    assert draw(spec, (3,), "normal", 1, Stream(1)).tolist() == [-1.0, 0.5, 2.0]
    assert impossible(tensor("float32", 4, values=(1.0, 2.0), order="strictly-increasing"), {})


def test_sizes_are_read_off_sums():
    """The dims that other axes determine are subtracted; two sums of two dims are solved together."""
    model = contract(PAST, CUR, a=tensor("int64", "past+cur"), b=tensor("int64", "cur"))
    shapes = [("a", model.inputs["a"], (7,)), ("b", model.inputs["b"], (2,))]
    assert solve_sizes(model, "here", shapes) == {"past": 5, "cur": 2}
    model = contract(PAST, CUR, a=tensor("int64", "past+cur"), b=tensor("int64", "2*past+cur+1"))
    shapes = [("a", model.inputs["a"], (7,)), ("b", model.inputs["b"], (13,))]
    assert solve_sizes(model, "here", shapes) == {"past": 5, "cur": 2}


def test_a_sum_that_does_not_fit_names_what_is_known():
    """The message says which sizes the other axes gave."""
    model = contract(PAST, CUR, p=tensor("int64", "past"), c=tensor("int64", "cur"), m=tensor("int64", "past+cur"))
    shapes = [(name, spec, (length,)) for (name, spec), length in zip(model.inputs.items(), (3, 2, 6), strict=True)]
    with pytest.raises(UserError) as caught:
        solve_sizes(model, "here", shapes)
    assert str(caught.value).splitlines()[0] == (
        "here: input 'm': axis 0: expected past + cur with past=3, cur=2, got 6"
    )


def test_data_is_held_against_bounds_of_its_own_sizes(tmp_path: Path):
    """A position beyond the end of its row is refused, and the message has the numbers."""
    np.savez(tmp_path / "d.npz", x=np.zeros((1, 3), np.float32), positions=np.array([[0, 1, 3]]))
    inputs = {"x": tensor("float32", "seq", range=(0, 1)), "positions": POSITIONS}
    with pytest.raises(UserError, match=r"input 'positions': expected values in \[0, 2\], got 0 to 3"):
        build_control_set(with_data(SEQ, path="d.npz", inputs=inputs), tmp_path)


@pytest.mark.parametrize("text", ["3", "seq", "2*seq+1", "seq-1", "past + cur", "2*past - cur + 1", "-seq+4", "-2"])
def test_an_expression_is_written_as_it_is_read(text: str):
    """What messages, reports and ONNX files show can be pasted into a config."""
    assert str(parse_expression(text)) == text


def test_dims_with_a_size_are_numbers():
    """A partly known expression keeps its unknown part."""
    assert parse_expression("2*past+cur+1").fixed({"past": 3}) == Size(factors={"cur": 1}, offset=7)
