"""Pictures of errors: what a histogram counts, what a map shows, and which control input is kept."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from export_gate.wall.codec import decode, encode
from export_gate.wall.observation import ErrorPicture
from export_gate.worker.leaves.compare import compare_case
from export_gate.worker.leaves.picture import Gallery
from export_gate.worker.leaves.values import Leaf

NAN, INF = math.nan, math.inf
DTYPES = ("float64", "float32", "float16", "int64", "int32", "uint8", "bool", "complex64")


def leaves(value: Any, dtype: str = "float32", name: str = "logits") -> tuple[Leaf, ...]:
    """One output leaf."""
    return (Leaf(name=name, dtype=dtype, value=np.asarray(value, dtype=dtype)),)


def seen(*cases: tuple[Any, Any], dtype: str = "float32") -> tuple[ErrorPicture, ...]:
    """The pictures after these (expected, actual) pairs, which are the cases a, b, ..."""
    gallery = Gallery()
    for name, (expected, actual) in zip("abcdefgh", cases, strict=False):
        e, a = leaves(expected, dtype), leaves(actual, dtype)
        gallery.look(compare_case(name, e, a), e, a)
    return gallery.pictures()


def test_equal_outputs_have_no_picture():
    """Without differences there is nothing to draw."""
    assert seen(([1.0, NAN], [1.0, NAN]), ([2.0, INF], [2.0, INF])) == ()


def test_the_worst_case_is_kept():
    """The picture is that of the worst case by the default tolerances, not of the largest values."""
    huge = ([1000.0, 1000.0], [1000.0, 1000.5])
    assert [p.case for p in seen(([1.0, 1.0], [1.0, 1.25]), huge, ([1.0, 1.0], [1.0, 1.125]))] == ["a"]


def test_a_case_with_other_nans_is_the_worst():
    """A NaN on one side is worse than every difference of numbers, and its cell says that there is no number."""
    (picture,) = seen(([1.0, 1.0], [1.0, 9.0]), ([1.0, 2.0, 3.0], [NAN, 2.0, 3.5]))
    assert (picture.case, picture.where, picture.grid) == ("b", (0,), (INF, 0.0, 0.5))
    assert (picture.equal, sum(picture.unequal)) == (1, 1)


def test_a_single_number_has_no_picture():
    """One number has no distribution, so the report shows it directly."""
    assert seen((1.0, 2.0)) == ()
    assert seen(([[1.0]], [[2.0]])) == ()


def test_steps_are_quarters_of_a_decade():
    """Each step of the histogram is a factor of 10**(1/4), and the last one contains all smaller differences."""
    gaps = [1.0, 0.9, 0.5, 0.1, 0.01, 1e-5, 1e-30, 0.0]
    (picture,) = seen((np.zeros(8), gaps), dtype="float64")
    counted = {step: count for step, count in enumerate(picture.unequal) if count}
    assert counted == {0: 2, 1: 1, 4: 1, 8: 1, 20: 1, 23: 1}
    assert picture.equal == 1


def test_the_map_shows_the_slice_with_the_largest_difference():
    """The map shows the last two axes longer than 1, at the other indices of the largest difference."""
    expected = np.zeros((3, 4, 1, 5), np.float32)
    actual = expected.copy()
    actual[1, 2, 0, 3], actual[2, 2, 0, 3] = 0.5, 0.25
    (picture,) = seen((expected, actual))
    assert (picture.where, picture.axes) == ((1, 2, 0, 3), (1, 3))
    assert np.array_equal(np.reshape(picture.grid, (-1, picture.columns)), actual[1, :, 0, :])


def test_large_maps_keep_the_largest_of_each_cell():
    """A map has at most 32 x 32 cells, and no difference is lost between them."""
    expected = np.zeros((100, 1000), np.float32)
    actual = expected.copy()
    actual[57, 123], actual[99, 999] = 0.25, 0.5
    (picture,) = seen((expected, actual))
    grid = np.reshape(picture.grid, (-1, picture.columns))
    assert grid.shape == (32, 32)
    assert {(int(r), int(c)): float(grid[r, c]) for r, c in np.argwhere(grid)} == {(18, 3): 0.25, (31, 31): 0.5}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_every_entry_is_counted(dtype: str, data: st.DataObject):
    """Equal, unequal and non-finite entries add up to all of them, and the map's largest is the comparison's."""
    shape = data.draw(hnp.array_shapes(max_dims=3, max_side=40))
    drawn = "float32" if dtype == "float16" else dtype  # hypothesis gives up on many float16s
    with np.errstate(over="ignore"):
        expected, actual = (data.draw(hnp.arrays(drawn, shape)).astype(dtype) for _ in range(2))
    e, a = leaves(expected, dtype), leaves(actual, dtype)
    result = compare_case("a", e, a)
    gallery = Gallery()
    gallery.look(result, e, a)
    for picture in gallery.pictures() if result.outputs[0].max_abs_diff < 1e308 else ():  # beyond, float64 overflows
        parts = [(x.real, x.imag) for x in (expected, actual)] if dtype == "complex64" else [(expected,), (actual,)]
        one_sided = sum(
            int(np.sum(~(np.isfinite(x) & np.isfinite(y)) & ~((x == y) | (np.isnan(x) & np.isnan(y)))))
            for x, y in zip(*parts, strict=True)
        )
        assert picture.equal + sum(picture.unequal) + one_sided == expected.size * len(parts[0])
        apart = result.outputs[0].sentinels
        largest, measured = max(picture.grid), max(result.outputs[0].max_abs_diff, apart.max_abs_diff if apart else 0)
        if not result.outputs[0].nonfinite_mismatched:
            assert largest == pytest.approx(measured, rel=6e-3)  # three digits
        assert decode(ErrorPicture, encode(picture)) == picture


def test_pictures_cost_little():
    """A hundred cases in random order take less than twice the time of their comparisons, equal ones none."""
    random = np.random.default_rng(0)
    e = leaves(random.normal(size=100_000))
    noisy = [leaves(e[0].value + random.normal(size=100_000) * scale) for scale in random.uniform(1e-6, 1e-4, 30)]
    started = time.perf_counter()
    results = [compare_case("a", e, a) for a in noisy]
    comparing = time.perf_counter() - started
    gallery = Gallery()
    started = time.perf_counter()
    for result, a in zip(results, noisy, strict=True):
        gallery.look(result, e, a)
    drawing = time.perf_counter() - started
    assert len(gallery.pictures()) == 1
    assert drawing < comparing


def test_the_largest_difference_stays_finite():
    """Rounded to three digits, it would be infinite."""
    gallery = Gallery()
    expected, actual = (leaves(np.array(values), "float64") for values in ([1.7958954e308, 1.0], [0.0, 0.0]))
    gallery.look(compare_case("a", expected, actual), expected, actual)
    (picture,) = gallery.pictures()
    assert max(picture.grid) == 1.7958954e308
