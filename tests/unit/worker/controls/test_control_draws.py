import hashlib
import math
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch
from control_samples import contract, tensor
from hypothesis import given, settings
from hypothesis import strategies as st

from export_gate.wall.contract import BOOL_DRAWS, DTYPES, FLOAT_DRAWS, INTEGER_DRAWS, Dim, Size, TensorSpec
from export_gate.worker.controls.build import build_control_set, values_at
from export_gate.worker.controls.draws import base_family, draw, families
from export_gate.worker.controls.intervals import admits
from export_gate.worker.controls.stream import Stream

FLOATS = ("float64", "float32", "float16", "bfloat16")
COMPLEX = ("complex64", "complex128")
INTEGERS = ("int64", "int32", "int16", "int8", "uint8")


def made(spec: TensorSpec, shape: tuple[int, ...], family: str, index: int = 1, seed: int = 0):
    """One draw."""
    return draw(spec, shape, family, index, Stream(seed, family))


def test_the_stream_is_fixed_for_ever():
    """Seeded numbers are the same on every machine and for every numpy version."""
    stream = Stream(7, "halves-1@batch=2", "x")
    drawn = [stream.uniform(1000), stream.normal(1000), stream.integers(-5, 5, 1000), stream.permutation(1000)]
    total = hashlib.sha256(b"".join(part.astype(part.dtype.newbyteorder("<")).tobytes() for part in drawn))
    assert total.hexdigest() == "b0cd147de6ca6cd4aa8e867d1ff35dbca5f7d8c0d9ff3010c725159980e0988a"


def test_the_stream_is_normal_enough():
    """Mean 0 and variance 1, within five standard errors of 100,000 draws, and never beyond six."""
    values = Stream(1, "normal").normal(100_000)
    assert abs(values.mean()) < 5 / math.sqrt(100_000)
    assert abs(values.var() - 1) < 5 * math.sqrt(2 / 100_000)
    assert np.abs(values).max() < 6


@pytest.mark.parametrize(("low", "high"), [(-(2**63), 2**63 - 1), (2**63 - 3, 2**63 - 1), (-(2**63), -(2**63))])
def test_integers_reach_the_ends_of_int64(low: int, high: int):
    """The whole of int64 and its corners can be drawn from."""
    values = Stream(1, "wide").integers(low, high, 200)
    assert all(low <= int(value) <= high for value in values)


bounds = st.floats(-1e6, 1e6, width=32).map(float)


@st.composite
def specs(choose: st.DrawFn):
    """Tensor inputs of every kind."""
    dtype = choose(st.sampled_from(DTYPES))
    low, high = sorted((choose(bounds), choose(bounds)))
    if dtype in INTEGERS:
        limits = torch.iinfo(getattr(torch, dtype))
        low, high = (float(math.floor(min(max(bound, limits.min), limits.max))) for bound in (low, high))
    limit = 6e4 if dtype == "float16" else math.inf
    low, high = (min(max(bound, -limit), limit) for bound in (low, high))
    declared = choose(st.booleans())
    values = tuple(choose(st.lists(st.sampled_from((0, 1, 100)), max_size=3))) if dtype != "bool" else ()
    is_float = dtype in FLOATS + COMPLEX
    nonfinite = choose(st.sampled_from(((), ("nan",), ("inf",), ("nan", "inf")))) if is_float else ()
    rank = choose(st.integers(0, 4))
    shape = tuple(Size(offset=choose(st.integers(0, 4))) for _ in range(rank))
    return TensorSpec(
        dtype=dtype,
        shape=shape,
        range=(low, high) if declared and dtype != "bool" else None,
        values=tuple(float(v) for v in values),
        nonfinite=nonfinite,
    )


@settings(max_examples=300, deadline=None, derandomize=True)
@given(specs(), st.integers(1, 4))
def test_every_draw_keeps_the_contract(spec: TensorSpec, index: int):
    """Whatever is declared, every family gives the declared type and shape, within range, values and policy."""
    shape = tuple(axis.offset for axis in spec.shape)
    for family in families(spec):
        drawn = made(spec, shape, family, index)
        assert drawn.dtype == getattr(torch, spec.dtype)
        assert tuple(drawn.shape) == shape
        assert drawn.is_contiguous()
        assert admits(spec, drawn) == "", family
        if family != "nonfinite" and spec.dtype in FLOATS + COMPLEX:
            assert bool(torch.isfinite(torch.view_as_real(drawn) if drawn.is_complex() else drawn).all())


@settings(max_examples=100, deadline=None, derandomize=True)
@given(specs())
def test_families_are_the_contracts_own(spec: TensorSpec):
    """Every family is one that a config can name."""
    known = {"bool": BOOL_DRAWS, **dict.fromkeys(INTEGERS, INTEGER_DRAWS)}.get(spec.dtype, FLOAT_DRAWS)
    known = BOOL_DRAWS if spec.is_mask else known
    assert set(families(spec)) <= set(known)
    assert len(families(spec)) == len(set(families(spec)))


@pytest.mark.parametrize("span", [(0, 1), (-4, 4), (-4000, 4000), (-9, -2), (0.1, 0.3), (0, 255), (500, 1000), (-1, 0)])
def test_no_two_families_are_the_same_tensor(span: tuple[float, float]):
    """Families that would be the same in a range are left out."""
    spec = tensor("float32", 4, 6, range=span)
    drawn = {family: made(spec, (4, 6), family) for family in families(spec)}
    assert not [(one, other) for one, other in combinations(drawn, 2) if torch.equal(drawn[one], drawn[other])]


def test_a_wide_range_has_every_finite_family():
    """In a range of +-4000 all families but nonfinite fit."""
    assert set(families(tensor("float32", 4, range=(-4000, 4000)))) == set(FLOAT_DRAWS) - {"nonfinite"}


def test_without_a_range_floats_are_normal_only():
    """An undeclared range gives normal draws, plus non-finite ones if those are admitted."""
    assert families(tensor("float32", 4)) == ("normal",)
    assert families(tensor("complex64", 4, nonfinite=("nan",))) == ("normal", "nonfinite")


def test_without_a_range_integers_are_0_and_1():
    """An undeclared range gives zeros and ones."""
    spec = tensor("int64", 8)
    seen = {int(v) for family in families(spec) for v in made(spec, (8,), family)}
    assert seen == {0, 1}


def test_draws_narrows_the_families():
    """`draws` picks families, and the plainest of them is the base."""
    spec = tensor("float32", 4, range=(-4, 4), draws=("zeros", "uniform"))
    assert set(families(spec)) == {"zeros", "uniform"}
    assert base_family(tensor("float32", 4, range=(-4, 4), draws=("zeros",))) == "zeros"


def test_a_draw_that_does_not_fit_falls_back_to_the_base():
    """`draws: [large]` in [0, 1] leaves the base family."""
    assert families(tensor("float32", 4, range=(0, 1), draws=("large",))) == ("normal",)


def test_offset_has_a_mean_far_above_its_spread():
    """In a wide range: 1000 with a spread of 1; in [0, 1]: three quarters with a hundredth."""
    wide = made(tensor("float64", 1000, range=(-4000, 4000)), (1000,), "offset")
    assert abs(wide.mean().item() - 1000) < 0.2
    assert 0.9 < wide.std().item() < 1.1
    narrow = made(tensor("float64", 1000, range=(0, 1)), (1000,), "offset")
    assert abs(narrow.mean().item() - 0.75) < 0.01
    assert 0.009 < narrow.std().item() < 0.011


def test_sweep_runs_from_minus_20_to_20():
    """Equal steps over -20..20, or over what the range has of it."""
    assert torch.equal(
        made(tensor("float64", 41, range=(-50, 50)), (41,), "sweep"), torch.arange(-20.0, 21, dtype=torch.float64)
    )
    narrow = made(tensor("float32", 5, range=(-1, 1)), (5,), "sweep")
    assert torch.equal(narrow, torch.tensor([-1, -0.5, 0, 0.5, 1]))
    beyond = made(tensor("float32", 3, range=(100, 300)), (3,), "sweep")
    assert beyond.tolist() == [100, 200, 300]


def test_halves_are_multiples_of_one_half():
    """Halves are exact multiples of 1/2, in [0, 1] too; narrower ranges take a smaller power of two."""
    wide = made(tensor("float32", 200, range=(-4000, 4000)), (200,), "halves")
    assert torch.equal(wide * 2, (wide * 2).round())
    assert set(made(tensor("float32", 200, range=(0, 1)), (200,), "halves").tolist()) == {0, 0.5, 1}
    tiny = made(tensor("float32", 200, range=(0.1, 0.2)), (200,), "halves")
    assert torch.equal(tiny * 64, (tiny * 64).round())


def test_large_is_a_thousand_times_as_wide():
    """Large values have a spread of 1000 where the range allows it, and stay on the range's side."""
    wide = made(tensor("float64", 1000, range=(-1e6, 1e6)), (1000,), "large")
    assert 900 < wide.std().item() < 1100
    image = made(tensor("float64", 1000, range=(-4, 255)), (1000,), "large")
    assert image.median().item() > 20


@pytest.mark.parametrize(("kinds", "nan", "inf"), [(("nan",), True, False), (("inf",), False, True)])
def test_nonfinite_has_the_admitted_kinds_only(kinds: tuple[str, ...], nan: bool, inf: bool):
    """NaN and infinity appear only if each is admitted, whatever the index."""
    spec = tensor("float32", 8, 5, range=(-4, 4), nonfinite=kinds)
    for index in (1, 2, 3):
        drawn = made(spec, (8, 5), "nonfinite", index)
        assert (bool(drawn.isnan().any()), bool(drawn.isinf().any())) == (nan, inf)


def test_nonfinite_takes_turns_where_both_are_admitted():
    """Index 1 is NaN alone, 2 infinities alone, 3 both; one row is wholly non-finite and one wholly finite."""
    spec = tensor("float32", 8, 5, range=(-4, 4), nonfinite=("nan", "inf"))
    one, two, three = (made(spec, (16, 8), "nonfinite", index) for index in (1, 2, 3))
    assert one.isnan().any()
    assert not one.isinf().any()
    assert two.isposinf().any()
    assert two.isneginf().any()
    assert not two.isnan().any()
    assert three.isnan().any()
    assert three.isinf().any()
    assert (~three.isfinite()).all(1).any()
    assert any(bool((row == sign).all()) for row in two for sign in (torch.inf, -torch.inf))
    assert (~one[0].isfinite())[[0, -1]].all()


def test_values_restricts_every_family():
    """With `values: [0, 1, 255]` nothing else is drawn, and a sweep takes them in turn."""
    spec = tensor("uint8", 6, values=(0, 1, 255))
    assert families(spec) == ("random", "low", "high", "distinct")
    assert made(spec, (6,), "distinct").tolist() == [0, 1, 255, 0, 1, 255]
    assert families(tensor("float32", 6, values=(-1, 0, 1))) == ("normal", "low", "high", "zeros", "sweep")
    assert families(tensor("float32", 6, values=(3,))) == ("normal",)


def test_one_value_in_range_is_one_family():
    """A range of one value cannot vary."""
    assert families(tensor("float32", 6, range=(2, 2))) == ("normal",)
    assert families(tensor("int64", 6, range=(2, 2))) == ("random",)


def test_bounds_round_inwards():
    """float16 cannot hold 0.3, so no draw is above it."""
    spec = tensor("float16", 50, range=(0.1, 0.3))
    high = made(spec, (50,), "high").double()
    assert high.max().item() <= 0.3
    assert made(spec, (50,), "low").double().min().item() >= 0.1


@pytest.mark.parametrize("span", [(0, 1e-320), (-1e-320, -1e-330)])
def test_bounds_below_the_types_smallest_number_still_draw(span: tuple[float, float]):
    """A range that underflows the type gives the nearest value."""
    assert torch.isfinite(made(tensor("float32", 3, range=span), (3,), "normal")).all()


def test_an_infinite_bound_is_finite_draws():
    """`range: [0, .inf]` draws finite values."""
    spec = tensor("float32", 50, range=(0, math.inf))
    assert all(made(spec, (50,), family).isfinite().all() for family in families(spec))


def test_distinct_integers_are_distinct():
    """Distinct is a permutation if the range is wide enough, else the range repeated."""
    wide = made(tensor("int64", 10, range=(5, 100)), (10,), "distinct").tolist()
    assert len(set(wide)) == 10
    narrow = made(tensor("int64", 9, range=(0, 2)), (9,), "distinct").tolist()
    assert [narrow.count(value) for value in (0, 1, 2)] == [3, 3, 3]


def test_duplicates_are_one_value():
    """Duplicates has the same value everywhere."""
    assert len(set(made(tensor("int64", 9, range=(0, 50)), (9,), "duplicates").tolist())) == 1


def test_bool_masks_are_what_their_names_say():
    """Row-off clears one row, tail-off each row's end, right-padded from its length on, right-masked the reverse."""
    spec = tensor("bool", "batch", 7)
    off = made(spec, (5, 7), "row-off")
    assert (~off).any(1).sum().item() == (~off).all(1).sum().item() == 1
    tail = made(spec, (5, 7), "tail-off")
    assert not tail[:, -1].any()
    assert tail[:, :3].all()
    padded = made(spec, (5, 7), "right-padded")
    assert torch.equal(padded, padded.long().cummin(1).values.bool())
    assert padded.all(1).any()
    assert padded[:, 0].all()
    masked = made(spec, (5, 7), "right-masked")
    assert torch.equal(masked, masked.long().cummax(1).values.bool())
    assert (~masked).all(1).any()
    assert not masked[:, 0].any()
    assert 1 <= made(spec, (5, 7), "sparse").sum().item() < 20
    assert made(spec, (5, 7), "all-true").all()
    assert not made(spec, (5, 7), "all-false").any()


@pytest.mark.parametrize("limits", [{"range": (0, 1)}, {"values": (0, 1)}])
def test_integers_that_are_zero_or_one_are_masks(limits: dict[str, tuple[int, int]]):
    """An attention mask of int64 gets the mask families, whichever way 0 and 1 are declared."""
    spec = tensor("int64", "batch", 7, **limits)
    assert {"right-padded", "row-off", "all-true"} <= set(families(spec))
    padded = made(spec, (5, 7), "right-padded")
    assert padded.dtype == torch.int64
    assert torch.equal(padded, padded.cummin(1).values)
    assert families(replace(spec, draws=("low", "tail-off"))) == ("all-false", "tail-off")


def test_a_case_is_the_same_whatever_else_is_declared():
    """The values of a case depend only on seed, case name and input path."""
    dim = Dim(name="n", min=1, max=4)
    plain = contract(dim, x=tensor("float32", "n", range=(-4, 4)))
    picked = contract(dim, x=tensor("float32", "n", range=(-4, 4), draws=("halves",)), y=tensor("int64", "n"))
    one, other = (values_at(c, {"n": 3}, "halves", 1)["x"] for c in (plain, picked))
    assert torch.equal(one, other)


def test_sizes_outside_the_range_can_be_drawn():
    """Guard probes draw at sizes that the contract does not allow."""
    model = contract(Dim(name="n", min=2, max=4), x=tensor("float32", "n", 3, range=(-4, 4)))
    assert [values_at(model, {"n": n}, "normal", 1)["x"].shape[0] for n in (0, 1, 5)] == [0, 1, 5]


def test_nonfinite_reaches_whole_tensors_of_one_sign():
    """Indices 4 and 5 are one infinity everywhere if infinities are admitted, also at the smallest sizes."""
    both = tensor("float32", 2, 3, range=(-4, 4), nonfinite=("nan", "inf"))
    assert bool((made(both, (2, 3), "nonfinite", 4) == torch.inf).all())
    assert bool((made(both, (2, 3), "nonfinite", 5) == -torch.inf).all())
    assert bool(made(tensor("float32", 2, 3, nonfinite=("nan",)), (2, 3), "nonfinite", 4).isfinite().any())
    batch = Dim(name="batch", min=1, max=9)
    names = {
        case.name
        for case in build_control_set(
            contract(batch, x=tensor("float32", "batch", 3, nonfinite=("inf",))), Path()
        ).cases
    }
    assert {f"nonfinite-{index}@batch={size}" for index in (4, 5) for size in (1, 5)} <= names


def test_ends_are_the_bounds_alone():
    """Each element is the lowest or the highest value, and both occur, of floats and of integers."""
    for dtype, bounds in (("float32", (-2.0, 5.0)), ("int64", (3, 9))):
        assert set(made(tensor(dtype, 40, range=bounds), (40,), "ends").tolist()) == set(bounds)


def test_tiny_is_near_zero_in_a_wide_range():
    """Magnitudes spread over twenty powers of two below 1, of both signs where the range has both."""
    drawn = made(tensor("float32", 1000, range=(-4000, 4000)), (1000,), "tiny")
    assert float(drawn.abs().max()) <= 1
    assert float(drawn.abs().min()) < 1e-5
    assert bool((drawn < 0).any() and (drawn > 0).any())
    assert float(made(tensor("float32", 1000, range=(0, 4000)), (1000,), "tiny").min()) > 0
    assert "tiny" not in families(tensor("float32", 4, range=(1, 4000)))


def test_bands_give_each_row_a_range_of_its_own():
    """Rows fill different parts of the range, each of them narrower than all together."""
    drawn = made(tensor("float64", 20, 200, range=(0, 1)), (20, 200), "bands")
    widths = drawn.amax(1) - drawn.amin(1)
    assert float(widths.min()) < 0.5 < float(drawn.max() - drawn.min())
    assert len({round(float(value), 6) for value in drawn.amin(1)}) == 20


def test_zeros_and_halves_have_negative_zeros():
    """Where the range has negative numbers, about half of the zeros are negative."""
    for family in ("zeros", "halves"):
        drawn = made(tensor("float32", 1000, range=(-4, 4)), (1000,), family)
        zeros = drawn[drawn == 0]
        assert 0.3 < float(torch.signbit(zeros).float().mean()) < 0.7
    assert not bool(torch.signbit(made(tensor("float32", 100, range=(0, 4)), (100,), "zeros")).any())


def test_spots_are_bright_on_a_dark_image():
    """uint8 images have a dark mean and a few bright values; other integers have no such family."""
    image = tensor("uint8", 3, 32, 32, range=(0, 255))
    drawn = made(image, (3, 32, 32), "spots").double()
    assert float(drawn.mean()) < 25
    assert 0.01 < float((drawn > 200).double().mean()) < 0.06
    assert "spots" in families(image)
    assert "spots" not in families(tensor("int64", 3, 32, 32, range=(0, 255)))
