from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rule_samples import leaf

from export_gate.rules.wording import round_up
from export_gate.wall.contract import Tolerance
from export_gate.wall.equivalence import faults, first_fault, is_excused, is_lax, ratio, worst_norm
from export_gate.wall.noise import Noise
from export_gate.wall.observation import AxisNorms, Comparison, NonfiniteCount

ONNX = Tolerance(atol=1e-5, rtol=1e-5)
NORMS = (AxisNorms(index=0, max_abs_diff=1.1e-5, expected_max_abs=2.4),)
ANY = st.floats(allow_nan=True, allow_infinity=True)
SIZES = st.floats(min_value=0, max_value=1e30)


@given(measured=SIZES, scale=SIZES, atol=SIZES, rtol=st.floats(min_value=0, max_value=10))
def test_a_value_passes_exactly_where_the_inequality_holds(measured: float, scale: float, atol: float, rtol: float):
    """Equivalent means max|P-M| <= atol + rtol * max|M|, equality included."""
    fault = first_fault(leaf(max_abs_diff=measured, expected_max_abs=scale), Tolerance(atol=atol, rtol=rtol), "match")

    assert (fault is None) == (measured <= atol + rtol * scale)


@given(scale=SIZES, atol=SIZES, rtol=st.floats(min_value=0, max_value=10))
def test_a_difference_of_exactly_the_bound_passes_and_the_next_float_does_not(scale: float, atol: float, rtol: float):
    """The bound is inclusive, and not wider by a bit."""
    bound, tolerance = atol + rtol * scale, Tolerance(atol=atol, rtol=rtol)
    above = math.nextafter(bound, math.inf)

    assert first_fault(leaf(max_abs_diff=bound, expected_max_abs=scale), tolerance, "match") is None
    assert first_fault(leaf(max_abs_diff=above, expected_max_abs=scale), tolerance, "match") == "value"


@given(measured=ANY, scale=ANY, atol=ANY, rtol=ANY)
def test_nothing_that_is_not_finite_passes(measured: float, scale: float, atol: float, rtol: float):
    """A NaN or infinity among the numbers of a verdict is never agreement."""
    fault = first_fault(leaf(max_abs_diff=measured, expected_max_abs=scale), Tolerance(atol=atol, rtol=rtol), "match")

    if not (math.isfinite(measured) and math.isfinite(atol + rtol * scale)):
        assert fault == "value"


@given(excess=st.floats(min_value=1e-290, max_value=1e290))
def test_a_suggested_tolerance_is_never_too_small(excess: float):
    """The atol in a hint accepts the difference, and is close to it."""
    assert excess <= round_up(excess) <= excess * 1.11


@pytest.mark.parametrize("excess", [5e-324, 1e-310, math.inf])
def test_a_tolerance_is_suggested_for_any_difference(excess: float):
    """Also for the smallest one of float64, and for one that it cannot hold."""
    assert round_up(excess) >= excess


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, None),
        ({"actual_dtype": "float64", "actual_shape": (6,), "max_abs_diff": 1.0}, "dtype"),
        ({"actual_shape": (6,), "nonfinite_mismatched": 1, "max_abs_diff": 1.0}, "shape"),
        ({"actual_shape": (), "expected_shape": (1,)}, "shape"),
        ({"nonfinite_mismatched": 1, "max_abs_diff": 1.0}, "nonfinite"),
        ({"max_abs_diff": 1.0}, "value"),
    ],
)
def test_the_first_fault_decides(fields: dict[str, object], expected: str | None):
    """Dtype comes before shape, shape before non-finite masks, and these before values."""
    assert first_fault(leaf(**fields), ONNX, "match") == expected


@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool"])
def test_integers_and_bools_agree_only_without_a_mismatch(dtype: str):
    """One unequal element is a violation, however small the difference."""
    same = leaf(expected_dtype=dtype, actual_dtype=dtype, mismatched_elements=0, max_abs_diff=0.0)
    other = leaf(expected_dtype=dtype, actual_dtype=dtype, mismatched_elements=1, max_abs_diff=0.0)

    assert first_fault(same, Tolerance(atol=0.0, rtol=0.0), "match") is None
    assert first_fault(other, Tolerance(atol=0.0, rtol=0.0), "match") == "value"


@pytest.mark.parametrize(
    ("policy", "comparison", "expected"),
    [
        ("match", leaf(expected_nonfinite=NonfiniteCount(nan=2), actual_nonfinite=NonfiniteCount(nan=2)), None),
        ("match", leaf(nonfinite_mismatched=1), "nonfinite"),
        ("forbid", leaf(), None),
        ("forbid", leaf(expected_nonfinite=NonfiniteCount(neginf=1)), "nonfinite"),
        ("forbid", leaf(actual_nonfinite=NonfiniteCount(posinf=1)), "nonfinite"),
        ("allow", leaf(nonfinite_mismatched=1, actual_nonfinite=NonfiniteCount(nan=1)), None),
        ("allow", leaf(nonfinite_mismatched=1, max_abs_diff=1.0), "value"),
    ],
)
def test_nonfinite_elements_follow_the_outputs_policy(policy: str, comparison: Comparison, expected: str | None):
    """`match` needs equal masks, `forbid` none at all, `allow` leaves them out and still judges the rest."""
    assert first_fault(comparison, ONNX, policy) == expected  # type: ignore[arg-type]


def test_values_count_beside_nan_that_is_accepted_later():
    """A leaf with other NaN and other numbers has both faults."""
    assert faults(leaf(nonfinite_mismatched=1, max_abs_diff=1.0), ONNX, "match") == ("nonfinite", "value")


def test_with_an_axis_each_index_has_its_own_bound():
    """A small channel beside a large one is judged by its own size."""
    comparison = leaf(
        max_abs_diff=2e-3,
        expected_max_abs=1000.0,
        per_axis=(
            AxisNorms(index=0, max_abs_diff=2e-3, expected_max_abs=1000.0),
            AxisNorms(index=1, max_abs_diff=1e-3, expected_max_abs=1e-3),
        ),
    )

    assert first_fault(comparison, ONNX, "match") is None
    assert first_fault(comparison, Tolerance(atol=1e-5, rtol=1e-5, axis=1), "match") == "value"
    assert worst_norm(comparison, Tolerance(atol=1e-5, rtol=1e-5, axis=1)).index == 1


def test_a_leaf_without_the_axis_is_judged_as_a_whole():
    """A scalar loss next to wide logits does not need its own tolerance."""
    loss = leaf(expected_shape=(), actual_shape=(), elements=1)

    assert first_fault(loss, Tolerance(atol=1e-5, rtol=1e-5, axis=1), "match") is None


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_an_axis_that_was_not_observed_never_passes(axis: int):
    """When results are judged again with a new axis, a new run is required instead of the wider bound."""
    tolerance = Tolerance(atol=1e-5, rtol=1e-5, axis=axis)

    assert first_fault(leaf(max_abs_diff=1.1e-5), tolerance, "match") == "value"
    assert first_fault(leaf(max_abs_diff=1.1e-5, per_axis=NORMS), tolerance, "match") is None


def test_noise_does_not_excuse_an_axis_that_was_not_observed():
    """Results judged again with a tolerance axis lack its norms; noise of the whole output does not replace them."""
    noise = Noise(output="logits", case="normal-1", distance=1e-4, f64=1e-4)
    tolerance = Tolerance(atol=1e-6, rtol=1e-3, axis=1)

    assert not is_excused(leaf(max_abs_diff=1e-4, expected_max_abs=1.0), tolerance, noise)


def test_a_difference_within_atol_needs_no_norms_along_the_axis():
    """Equal outputs stay equal, whatever axis they are judged along later."""
    assert first_fault(leaf(max_abs_diff=1e-5), Tolerance(atol=1e-5, rtol=0.0, axis=1), "match") is None


@pytest.mark.parametrize(
    ("measured", "allowed", "expected"),
    [
        (2.0, 1.0, 2.0),
        (0.0, 0.0, 0.0),
        (1.0, 0.0, math.inf),
        (math.nan, 1.0, math.inf),
        (1.0, math.nan, math.inf),
        (None, None, math.inf),
    ],
)
def test_ratio_of_measured_to_allowed(measured: float | None, allowed: float | None, expected: float):
    """What cannot be expressed as a ratio counts as the worst."""
    assert ratio(measured, allowed) == expected


@pytest.mark.parametrize(
    ("tolerance", "scale", "expected"),
    [
        ((1e-5, 1e-5), 1.0, False),
        ((1e-5, 1e-5), 1e-3, True),
        ((1e-3, 5e-3), 0.65, False),  # float16 by default
        ((1e-2, 2e-2), 0.65, False),  # bfloat16 by default
        ((1e-2, 2e-2), 0.05, True),
        ((0.0, 1e-2), 1e-3, False),
        ((1e9, 1e-2), 1.0, True),
        ((0.0, 0.05), 1.0, False),  # declared, as for quantised weights
        ((0.0, 0.5), 1.0, True),
    ],
)
def test_a_tolerance_is_lax_where_its_atol_is_out_of_proportion(
    tolerance: tuple[float, float], scale: float, expected: bool
):
    """A declared rtol is intended; the atol next to it may add a few times as much."""
    atol, rtol = tolerance
    assert is_lax(leaf(expected_max_abs=scale), Tolerance(atol=atol, rtol=rtol)) is expected
