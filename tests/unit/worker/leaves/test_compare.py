"""Comparing output leaves, against a slow and obvious reference and at the known traps."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from export_gate.wall.observation import AxisNorms, CaseResult, Comparison, NonfiniteCount, Structure
from export_gate.worker.leaves import totals
from export_gate.worker.leaves.compare import compare_case, compare_leaf
from export_gate.worker.leaves.values import Leaf

NAN, INF = math.nan, math.inf


def leaf(value: Any, dtype: str | None = None, name: str = "output", *, python: bool = False) -> Leaf:
    """A leaf as `flatten` makes it."""
    array = np.asarray(value) if dtype is None or dtype == "bfloat16" else np.asarray(value, dtype=dtype)
    return Leaf(name=name, dtype=dtype or str(array.dtype), value=array, python=python)


def compared(expected: Any, actual: Any, dtype: str = "float32", axis: int | None = None) -> Comparison:
    """Two leaves of one dtype, compared."""
    return compare_leaf(leaf(expected, dtype), leaf(actual, dtype), axis)


# --- the reference: plain Python numbers, one loop, no cleverness -----------------------------------------------------


def _parts(value: Any) -> tuple[Any, ...]:
    value = value.item() if isinstance(value, np.generic) else value
    return (value.real, value.imag) if isinstance(value, complex) else (value,)


def _kind(x: float) -> str:
    return "nan" if math.isnan(x) else "posinf" if x == INF else "neginf" if x == -INF else "finite"


def slow_reference(expected: np.ndarray, actual: np.ndarray, axis: int | None) -> dict[str, Any]:
    """The fields of a comparison, found element by element."""
    gaps, scale, largest = [], 0, 0
    found = {"mismatched_elements": 0, "nonfinite_mismatched": 0, "where": None, "nonfinite_where": None}
    found |= {"expected_at": None, "actual_at": None}
    counts = {side: dict.fromkeys(("nan", "posinf", "neginf"), 0) for side in ("expected", "actual")}
    norms = {}
    for index in np.ndindex(expected.shape):
        pairs = list(zip(_parts(expected[index]), _parts(actual[index]), strict=True))
        kinds = [(_kind(e), _kind(a)) for e, a in pairs]
        for side, of_side in (("expected", [k[0] for k in kinds]), ("actual", [k[1] for k in kinds])):
            for kind in set(of_side) - {"finite"}:
                counts[side][kind] += 1
        if any(e != a for e, a in kinds):
            found["nonfinite_mismatched"] += 1
            found["nonfinite_where"] = found["nonfinite_where"] or index
        if any(e != a and not (math.isnan(e) and math.isnan(a)) for e, a in pairs):
            found["mismatched_elements"] += 1
        for (e, a), kind in zip(pairs, kinds, strict=True):
            if kind != ("finite", "finite"):
                continue
            gap = abs(int(a) - int(e)) if isinstance(e, (int, bool)) else abs(float(a) - float(e))
            gaps.append(float(gap))
            scale = max(scale, abs(int(e)) if isinstance(e, (int, bool)) else abs(e))
            if axis is not None:
                norm = norms.setdefault(index[axis], [0.0, 0.0])
                norm[:] = max(norm[0], float(gap)), max(norm[1], float(abs(e)))
            if gap > largest:
                largest = gap
                found |= {"where": index, "expected_at": float(e), "actual_at": float(a)}
    gaps.sort()
    per_mille = (500, 900, 990, 999, 1000) if gaps else ()
    found["error_quantiles"] = tuple(gaps[math.ceil(q * (len(gaps) - 1) / 1000)] for q in per_mille)
    found |= {"max_abs_diff": float(largest), "expected_max_abs": float(scale), "elements": expected.size}
    found |= {f"{side}_nonfinite": NonfiniteCount(**counts[side]) for side in counts}
    length = expected.shape[axis] if axis is not None else 0
    found["per_axis"] = tuple(
        AxisNorms(index=i, max_abs_diff=norms.get(i, (0.0, 0.0))[0], expected_max_abs=norms.get(i, (0.0, 0.0))[1])
        for i in range(length)
    )
    found["top1_agreement"] = _slow_top1(expected, actual)
    return found


def _slow_top1(expected: np.ndarray, actual: np.ndarray) -> float | None:
    if expected.ndim == 0 or expected.shape[-1] < 2 or np.iscomplexobj(expected):
        return None
    rows = list(np.ndindex(expected.shape[:-1]))

    def best(row: np.ndarray) -> int | None:
        numbers = [(i, x) for i, x in enumerate(row.tolist()) if not math.isnan(x)]
        return max(numbers, key=lambda pair: (pair[1], -pair[0]))[0] if numbers else None

    return sum(best(expected[row]) == best(actual[row]) for row in rows) / len(rows)


def _awkward(dtype: np.dtype) -> st.SearchStrategy[Any]:
    """Elements that collide and disagree often: few distinct values, with the extremes of the type."""
    if dtype.kind == "b":
        return st.booleans()
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return st.sampled_from([0, 1, 2, info.max, info.max - 1, info.min, info.min + 1, info.max // 2])
    limit = float(np.finfo(dtype).max)
    reals = [0.0, -0.0, 1.0, -1.5, 3.0, 1e-3, NAN, INF, -INF, limit, -limit, float(np.finfo(dtype).tiny)]
    if dtype.kind == "c":
        parts = st.sampled_from([x for x in reals if abs(x) != limit])
        return st.builds(complex, parts, parts)
    return st.sampled_from(reals) | st.floats(width=dtype.itemsize * 8)


DTYPES = (
    "float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "uint16", "uint64", "bool",
    "complex64", "complex128",
)  # fmt: skip


@st.composite
def array_pairs(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, int | None]:
    """Two arrays of one dtype and shape that agree in places, and an axis."""
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=1, max_side=4))
    expected = draw(hnp.arrays(dtype, shape, elements=_awkward(dtype)))
    actual = draw(hnp.arrays(dtype, shape, elements=_awkward(dtype)))
    kept = draw(hnp.arrays(bool, shape))
    axes = [None, *range(-len(shape), len(shape))]
    return expected, np.where(kept, expected, actual).astype(dtype), draw(st.sampled_from(axes))


@pytest.mark.slow
@pytest.mark.parametrize("block", [2, 6, totals.BLOCK])
@settings(max_examples=150, deadline=None, derandomize=True)
@given(pair=array_pairs())
def test_every_number_agrees_with_the_slow_reference(block: int, pair: Any):
    """Every number of a comparison is what one loop over Python numbers finds, however the array is cut in blocks."""
    expected, actual, axis = pair
    whole, totals.BLOCK = totals.BLOCK, block
    try:
        result = compare_leaf(leaf(expected), leaf(actual), axis)
    finally:
        totals.BLOCK = whole
    *plain, differ = without_sentinels(expected, actual)
    wanted = slow_reference(*plain, axis) | {"top1_agreement": _slow_top1(expected, actual)}
    wanted["mismatched_elements"] += differ
    assert {name: getattr(result, name) for name in wanted} == wanted


@pytest.mark.parametrize(
    ("peaks", "count"),
    [((-1.0, -1.0), 2), ((0.75, 0.5), None), ((-100.0, -1e4), 2)],
    ids=["one value", "probabilities", "large"],
)
def test_peaks_of_probabilities_are_no_placeholders(peaks: tuple[float, float], count: int | None):
    """A placeholder is one value, or larger than 1; a confident softmax has peaks of many sizes up to 1."""
    values = np.full(20, 1e-7, np.float32)
    values[[3, 9]] = peaks
    found = compare_leaf(leaf(values), leaf(values), None).sentinels

    assert (found.count if found else None) == count


def without_sentinels(expected: np.ndarray, actual: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Both arrays with zeros for placeholders, by the definition's own words; and how many of those differ."""
    entries = np.abs(expected.ravel().astype(np.float64)) if expected.dtype.kind == "f" else np.zeros(0)
    sizes = [x for x in entries.tolist() if x and math.isfinite(x)]
    if len(entries) < 2 or not sizes:
        return expected, actual, 0
    limit = 0.999 * float(np.finfo(expected.dtype).max)
    far = [x for x in sizes if x > 1e4 * float(np.median(sizes)) or x >= limit]
    if not far or len(far) == np.isfinite(entries).sum():
        return expected, actual, 0
    where = np.isfinite(expected) & (np.abs(expected.astype(np.float64)) >= min(far))
    if float(entries.max()) <= 1 and len(set(expected[where].tolist())) > 1:
        return expected, actual, 0
    both = where & np.isfinite(actual)
    differ = int((expected[both] != actual[both]).sum())
    return np.where(where, 0, expected).astype(expected.dtype), np.where(both, 0, actual).astype(actual.dtype), differ


@settings(max_examples=100, deadline=None, derandomize=True)
@given(pair=array_pairs())
def test_an_array_equals_itself(pair: Any):
    """A leaf compared with its own copy has no difference, NaN and infinities included."""
    expected, _, axis = pair
    result = compare_leaf(leaf(expected), leaf(expected.copy(order="F")), axis)
    assert (result.max_abs_diff, result.mismatched_elements, result.nonfinite_mismatched) == (0.0, 0, 0)
    assert result.where is None
    assert result.top1_agreement in (1.0, None)
    wanted = slow_reference(expected, expected, axis)
    assert {name: getattr(result, name) for name in wanted} == wanted


# --- non-finite values ------------------------------------------------------------------------------------------------


def test_nan_in_both_is_a_match():
    """NaN at the same place on both sides is not a difference."""
    result = compared([1.0, NAN], [1.0, NAN])
    assert (result.mismatched_elements, result.nonfinite_mismatched, result.max_abs_diff) == (0, 0, 0.0)
    assert result.expected_nonfinite == result.actual_nonfinite == NonfiniteCount(nan=1)


def test_nan_payloads_do_not_matter():
    """NaNs of different bits are the same NaN."""
    quiet, other = np.array([0x7FC00000, 0x7FC00001], np.uint32).view(np.float32)
    assert compared([quiet], [other]).mismatched_elements == 0


def test_nan_only_in_actual_is_a_nonfinite_mismatch():
    """A NaN that eager does not have is counted and located, and does not hide the finite difference."""
    result = compared([[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.5], [NAN, 4.0]])
    assert (result.nonfinite_mismatched, result.nonfinite_where) == (1, (1, 0))
    assert (result.max_abs_diff, result.where) == (0.5, (0, 1))
    assert (result.expected_nonfinite, result.actual_nonfinite) == (NonfiniteCount(), NonfiniteCount(nan=1))
    assert result.mismatched_elements == 2


def test_minus_infinity_against_finite_is_a_nonfinite_mismatch():
    """-inf where eager has a large negative number (another way to mask) is a mask difference, not an infinite norm."""
    result = compared([0.0, -INF], [0.0, -1e9])
    assert (result.nonfinite_mismatched, result.nonfinite_where, result.max_abs_diff) == (1, (1,), 0.0)
    assert result.expected_max_abs == 0.0


def test_infinities_of_different_sign_do_not_match():
    """+inf is not -inf."""
    assert compared([INF, 1.0], [-INF, 1.0]).nonfinite_mismatched == 1


def test_float16_overflow_in_actual():
    """A value that overflows to inf in float16 is a non-finite mismatch."""
    result = compared([65504.0, 1.0], [INF, 1.0], "float16")
    assert (result.nonfinite_mismatched, result.actual_nonfinite) == (1, NonfiniteCount(posinf=1))
    assert (result.max_abs_diff, result.expected_max_abs) == (0.0, 1.0)


def test_all_nan_leaves_no_quantiles():
    """Without finite entries there are no error quantiles."""
    assert compared([NAN, INF], [NAN, INF]).error_quantiles == ()


def test_a_difference_beyond_float64_is_infinite():
    """A finite difference too large for float64 is inf, which no tolerance allows."""
    largest = float(np.finfo(np.float64).max)
    result = compared([largest], [-largest], "float64")
    assert (result.max_abs_diff, result.where, result.nonfinite_mismatched) == (INF, (0,), 0)


# --- floats -----------------------------------------------------------------------------------------------------------


def test_negative_zero_equals_zero():
    """-0.0 and 0.0 are equal."""
    result = compared([0.0, -0.0, 1.0], [-0.0, 0.0, 1.0])
    assert (result.mismatched_elements, result.max_abs_diff, result.where) == (0, 0.0, None)


def test_float32_is_subtracted_in_float64():
    """A difference that float32 could not hold is kept."""
    result = compared([-1e8], [1.0])
    assert result.max_abs_diff == 100000001.0


def test_bfloat16_is_compared_as_its_exact_float32_values():
    """bfloat16 leaves keep their dtype's name while the widened values are compared."""
    result = compare_leaf(
        leaf(np.array([1.0, 2.0], np.float32), "bfloat16"), leaf(np.array([1.0, 2.015625], np.float32), "bfloat16")
    )
    assert (result.expected_dtype, result.actual_dtype, result.max_abs_diff) == ("bfloat16", "bfloat16", 0.015625)


def test_where_is_the_first_largest_difference():
    """Of equal differences, the first in C order counts, whatever the memory layout."""
    expected, actual = np.zeros((3, 4), np.float32), np.zeros((3, 4), np.float32)
    actual[1, 2] = actual[2, 0] = -2.0
    result = compare_leaf(leaf(np.asfortranarray(expected)), leaf(np.asfortranarray(actual)))
    assert (result.where, result.expected_at, result.actual_at) == ((1, 2), 0.0, -2.0)


def test_quantiles_are_errors_that_occur():
    """Quantiles are taken upwards to an observed error, so the last one is the maximum."""
    expected = np.zeros(1001, np.float32)
    actual = np.arange(1001, dtype=np.float32)
    assert compare_leaf(leaf(expected), leaf(actual)).error_quantiles == (500.0, 900.0, 990.0, 999.0, 1000.0)


# --- the tolerance axis -----------------------------------------------------------------------------------------------


def test_a_small_channel_beside_a_huge_one_has_its_own_norm():
    """With an axis, an error in a small channel is judged by that channel's own norm."""
    expected = np.array([[1e6, 1e-3], [2e6, 2e-3]], np.float32)
    actual = expected + np.array([[0.0, 5e-4], [0.0, 0.0]], np.float32)
    result = compare_leaf(leaf(expected), leaf(actual), axis=-1)
    huge, small = result.per_axis
    assert (huge.index, huge.max_abs_diff, huge.expected_max_abs) == (0, 0.0, 2e6)
    assert small.max_abs_diff == pytest.approx(5e-4, rel=1e-6)  # one float32 rounding
    assert small.expected_max_abs == float(np.float32(2e-3))
    assert result.expected_max_abs == 2e6


@pytest.mark.parametrize("axis", [2, -3])
def test_an_axis_beyond_the_rank_treats_the_leaf_whole(axis: int):
    """A leaf that lacks the tolerance axis is compared whole."""
    result = compared([[1.0, 2.0]], [[1.0, 2.5]], axis=axis)
    assert (result.per_axis, result.max_abs_diff) == ((), 0.5)


def test_identical_leaves_have_their_norms_along_the_axis():
    """Equal leaves also report the norms of each index."""
    assert compared([[1.0, -4.0]], [[1.0, -4.0]], axis=1).per_axis == (
        AxisNorms(index=0, max_abs_diff=0.0, expected_max_abs=1.0),
        AxisNorms(index=1, max_abs_diff=0.0, expected_max_abs=4.0),
    )


@settings(max_examples=30, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), atol=st.floats(0, 3), rtol=st.floats(0, 3))
def test_a_long_axis_keeps_the_norms_that_decide(seed: int, atol: float, rtol: float):
    """Of a long axis only the deciding indices are recorded; the verdict is the same under every tolerance."""
    rng = np.random.default_rng(seed)
    expected = (rng.integers(-4, 5, (2, 600)) * rng.random()).astype(np.float32)
    actual = expected + rng.integers(-1, 2, (2, 600)).astype(np.float32) * np.float32(rng.random())
    kept = compare_leaf(leaf(expected), leaf(actual), axis=1).per_axis
    gaps = np.abs(actual.astype(np.float64) - expected.astype(np.float64)).max(axis=0)
    norms = np.abs(expected).max(axis=0).astype(np.float64)
    assert 0 < len(kept) < 600
    assert all(norm.max_abs_diff == gaps[norm.index] for norm in kept)
    passes = all(norm.max_abs_diff <= atol + rtol * norm.expected_max_abs for norm in kept)
    assert passes == bool((gaps <= atol + rtol * norms).all())


# --- integers, bools, complex -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "expected", "actual", "difference"),
    [
        ("uint8", 0, 255, 255),
        ("uint8", 255, 0, 255),
        ("int8", -128, 127, 255),
        ("int64", -(2**63), 2**63 - 1, 2**64 - 1),
        ("int64", 2**53, 2**53 + 1, 1),
        ("uint64", 2**64 - 1, 0, 2**64 - 1),
    ],
)
def test_integer_differences_do_not_wrap(dtype: str, expected: int, actual: int, difference: int):
    """Integers are subtracted exactly, over the whole range of their type."""
    result = compared([expected, 0], [actual, 0], dtype)
    assert (result.max_abs_diff, result.mismatched_elements) == (float(difference), 1)
    assert result.expected_max_abs == float(abs(expected))


def test_the_largest_integer_difference_is_located_exactly():
    """Differences that are equal in float64 are still distinguished."""
    assert compared([0, 0], [2**60, 2**60 + 1], "int64").where == (1,)


def test_bools_count_as_zero_and_one():
    """A flipped bool is a difference of 1."""
    result = compared([True, False, True], [True, True, True], "bool")
    assert (result.max_abs_diff, result.where, result.mismatched_elements) == (1.0, (1,), 1)
    assert (result.expected_at, result.actual_at, result.expected_max_abs) == (0.0, 1.0, 1.0)


def test_complex_numbers_are_pairs_of_reals():
    """The norms are over real and imaginary parts; counts and positions are of the complex elements."""
    result = compared([1 + 2j, 3 - 8j], [1 + 2j, 3 - 7j], "complex64")
    assert (result.elements, result.mismatched_elements, result.where) == (2, 1, (1,))
    assert (result.max_abs_diff, result.expected_max_abs) == (1.0, 8.0)
    assert (result.expected_at, result.actual_at, result.top1_agreement) == (-8.0, -7.0, None)


def test_complex_nonfinite_parts_are_told_apart():
    """A NaN in the imaginary part does not match one in the real part, and the finite parts are still compared."""
    result = compared([complex(1, NAN), 1j], [complex(NAN, 1), 2j], "complex128")
    assert (result.nonfinite_mismatched, result.nonfinite_where) == (1, (0,))
    assert (result.max_abs_diff, result.where) == (1.0, (1,))


# --- top-1 ------------------------------------------------------------------------------------------------------------


def test_top1_agreement_is_the_share_of_rows():
    """The value is the share of rows whose largest entry is at the same place."""
    assert compared([[1, 2], [2, 1], [0, 9], [5, 4]], [[1, 3], [1, 2], [0, 1], [5, 4]]).top1_agreement == 0.75


@pytest.mark.parametrize(
    ("expected", "actual", "agreement"),
    [
        ([1.0, 2.0, NAN], [1.0, 2.0, 3.0], 0.0),
        ([1.0, 2.0, NAN], [1.0, NAN, 0.0], 0.0),
        ([NAN, 2.0, 3.0], [1.0, 2.0, 3.0], 1.0),
        ([NAN, NAN], [NAN, 1.0], 0.0),
        ([NAN, NAN], [NAN, NAN], 1.0),
        ([NAN, -INF], [-INF, NAN], 0.0),
    ],
)
def test_top1_passes_over_nan(expected: list[float], actual: list[float], agreement: float):
    """The top entry is the largest that is not NaN; a row of NaN agrees only with another."""
    assert compared([expected, expected], [actual, actual]).top1_agreement == agreement


@pytest.mark.parametrize("shape", [(), (3, 1), (0, 4)])
def test_top1_needs_rows_of_two(shape: tuple[int, ...]):
    """There is no top-1 agreement for scalars, single columns and empty outputs."""
    assert compared(np.zeros(shape), np.ones(shape)).top1_agreement is None


# --- dtype, shape, empty ----------------------------------------------------------------------------------------------


def test_other_dtype_is_not_compared():
    """Leaves of different dtype have both names and no numbers."""
    result = compare_leaf(leaf([1.0], "float32"), leaf([2.0], "float64"))
    assert result == Comparison(
        output="output", expected_dtype="float32", actual_dtype="float64", expected_shape=(1,), actual_shape=(1,)
    )


def test_one_element_is_not_a_scalar():
    """`(1,)` is not `()`, and nothing is broadcast."""
    result = compared([1.0], 1.0)
    assert (result.expected_shape, result.actual_shape, result.elements) == ((1,), (), 0)


def test_empty_leaves_compare_nothing():
    """Empty leaves of the same shape count zero compared elements."""
    result = compared(np.zeros((0, 3)), np.zeros((0, 3)))
    assert (result.elements, result.max_abs_diff, result.error_quantiles, result.per_axis) == (0, 0.0, (), ())


def test_a_leaf_without_a_number_cannot_be_compared_alone():
    """Comparing a None leaf is the caller's mistake."""
    with pytest.raises(ValueError, match=r"^leaf 'mask' is not numeric$"):
        compare_leaf(Leaf(name="mask", dtype="None", value=None), leaf([1.0]))


# --- cases ------------------------------------------------------------------------------------------------------------

NONE = Leaf(name="aux", dtype="None", value=None)


def test_a_case_compares_every_leaf_in_order():
    """Each leaf with a number gives one comparison; None leaves agree if both exist."""
    expected = (leaf([1.0], name="a"), NONE, leaf([1], name="b"))
    result = compare_case("normal-1@batch=2", expected, expected)
    assert [c.output for c in result.outputs] == ["a", "b"]
    assert (result.case, result.structure, result.failure) == ("normal-1@batch=2", None, None)


@pytest.mark.parametrize(
    ("actual", "names"),
    [
        ((leaf([1.0], name="a"),), ("a",)),
        ((NONE, leaf([1.0], name="a")), ("aux:None", "a")),
        ((leaf([1.0], name="a"), leaf([1.0], name="aux")), ("a", "aux")),
        ((leaf([1.0], name="a"), Leaf(name="aux", dtype="str", value=None)), ("a", "aux:str")),
        ((), ()),
    ],
)
def test_other_structure_is_recorded_and_nothing_compared(actual: tuple[Leaf, ...], names: tuple[str, ...]):
    """A missing, moved or added leaf, and a number where None was, are structure differences."""
    result = compare_case("c", (leaf([1.0], name="a"), NONE), actual)
    assert result == CaseResult(case="c", structure=Structure(expected=("a", "aux:None"), actual=names))


# --- Python numbers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_python_float_accepts_either_float(dtype: str):
    """A Python float counts as the artifact's 0-d float32 or float64."""
    result = compare_leaf(leaf(0.1, "float64", python=True), leaf(0.1, dtype))
    assert (result.expected_dtype, result.actual_dtype, result.mismatched_elements) == (dtype, dtype, 0)
    assert (result.expected_shape, result.elements) == ((), 1)


def test_a_python_float_too_large_for_float32_is_not_excused():
    """A Python float that float32 cannot hold does not match the inf that an artifact returns for it."""
    result = compare_leaf(leaf(1e300, "float64", python=True), leaf(INF, "float32"))
    assert (result.nonfinite_mismatched, result.expected_nonfinite) == (1, NonfiniteCount())


def test_a_python_float_does_not_accept_other_types():
    """float16 or an integer for a Python float is a dtype difference."""
    for dtype in ("float16", "int64"):
        result = compare_leaf(leaf(1.0, "float64", python=True), leaf(1, dtype))
        assert (result.expected_dtype, result.actual_dtype) == ("float64", dtype)


def test_a_tensor_does_not_accept_another_float():
    """Only Python floats are lenient: a float64 tensor is not float32."""
    assert compare_leaf(leaf(1.0, "float64"), leaf(1.0, "float32")).expected_dtype == "float64"


def test_a_python_int_is_int64():
    """A Python int matches a 0-d int64 and no other integer."""
    expected = leaf(7, "int64", python=True)
    assert compare_leaf(expected, leaf(7, "int64")).elements == 1
    assert compare_leaf(expected, leaf(7, "int32")).elements == 0


# --- cost -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_identical_arrays_need_no_float64_copy():
    """Comparing 4M equal float32 values takes less memory than one float64 copy of them, and little time."""
    array = np.linspace(-1, 1, 1 << 22, dtype=np.float32).reshape(4, -1)
    expected, actual = leaf(array), leaf(array.copy())
    peak, seconds = _cost(lambda: compare_leaf(expected, actual))
    assert peak < array.size * 8 / 2
    assert seconds < 0.5  # measured 0.01 s; a shared machine may be slow


def test_unequal_arrays_need_one_float64_copy():
    """Comparing 4M different float32 values takes less than twice the size of their float64 copy."""
    array = np.linspace(-1, 1, 1 << 22, dtype=np.float32).reshape(4, -1)
    expected, actual = leaf(array), leaf(array * np.float32(1.0001))
    peak, seconds = _cost(lambda: compare_leaf(expected, actual))
    assert peak < array.size * 8 * 2
    assert seconds < 5  # measured 0.1 s untraced


def _cost(action: Callable[[], object]) -> tuple[int, float]:
    tracemalloc.start()
    started = time.perf_counter()
    try:
        action()
        return tracemalloc.get_traced_memory()[1], time.perf_counter() - started
    finally:
        tracemalloc.stop()


def test_blocks_cover_every_element_once_in_order():
    """For any layout, the blocks follow each other without gap or overlap."""
    for outer, length, inner in itertools.product((1, 3, 70000), (1, 5, 70000), (1, 2, 70000)):
        if outer * length * inner > 10**7:
            continue
        at = 0
        for start, first, shape in totals.blocks_of(outer, length, inner):
            assert start == at
            assert first == (start // inner) % length
            assert 0 < math.prod(shape) <= totals.BLOCK
            at += math.prod(shape)
        assert at == outer * length * inner


@pytest.mark.slow
def test_comparing_does_not_import_torch():
    """Recorded outputs can be compared where torch is not installed."""
    check = "import sys; import export_gate.worker.leaves.compare; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
