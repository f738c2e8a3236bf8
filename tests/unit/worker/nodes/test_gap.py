"""The error of one value: what counts as a difference, and what as its size."""

from __future__ import annotations

import math

import numpy as np
import pytest

from export_gate.worker.nodes.gap import measure


def test_the_error_is_a_share_of_the_largest_entry():
    """The error is relative, so that values of all sizes can be drawn on one axis."""
    found = measure(np.array([2.0, -4.0], np.float32), np.array([2.0, -3.0], np.float32))

    assert (found.error, found.max_abs_diff, found.scale, found.is_wrong) == (0.25, 1.0, 4.0, True)


def test_rounding_is_no_difference():
    """A few units in the last place of float32 are rounding; float64 has smaller ones."""
    one = np.array([1.0, 0.5])

    assert not measure(one.astype(np.float32), (one * (1 + 2e-6)).astype(np.float32)).is_wrong
    assert measure(one, one * (1 + 2e-6)).is_wrong


@pytest.mark.parametrize(
    ("actual", "words"),
    [
        (np.ones((2, 1), np.float32), "shape [2, 1], expected [2]"),
        (np.array([1.0, np.nan], np.float32), "NaN or infinity in 1 other places"),
        (np.array([1.0, -np.inf], np.float32), "NaN or infinity in 1 other places"),
    ],
)
def test_values_without_a_number_are_infinitely_far(actual: np.ndarray, words: str):
    """The point says what differs."""
    found = measure(np.ones(2, np.float32), actual)

    assert (found.error, found.words) == (math.inf, words)


@pytest.mark.parametrize(
    ("value", "other"), [(np.inf, -np.inf), (np.inf, np.nan), (np.nan, -np.inf), (np.inf, 1.0), (np.nan, 1.0)]
)
def test_each_place_with_another_special_value_counts_once(value: float, other: float):
    """An infinity of the other sign is as wrong as a number; equal infinities and two NaNs are not wrong."""
    expected = np.array([value, np.nan, -np.inf, 1.0], np.float32)
    actual = np.array([other, np.nan, -np.inf, 1.0], np.float32)

    assert measure(expected, actual).words == "NaN or infinity in 1 other places"
    assert measure(expected, expected.copy()).error == 0


def test_another_dtype_counts_only_where_it_is_asked_for():
    """Files may compute sizes and masks in other types than the program."""
    ones = np.ones(2, np.float32)

    assert measure(ones, ones.astype(np.float64)).error == 0
    assert measure(ones, ones.astype(np.float64), strict_dtype=True).error == math.inf


def test_the_end_of_a_dtype_stands_for_infinity():
    """A mask of -inf is written as the smallest float, and does not set the scale of the other entries."""
    expected = np.array([1.0, 2.0, -np.inf], np.float32)
    actual = np.array([1.0, 2.5, np.finfo(np.float32).min], np.float32)

    assert measure(expected, actual).error == 0.25


def test_placeholders_do_not_set_the_scale():
    """-1e9 in a masked score would hide every error of the others."""
    expected = np.array([*np.linspace(1, 2, 50), -1e9], np.float32)
    actual = expected.copy()
    actual[3] += 1

    assert measure(expected, actual).error == pytest.approx(0.5, rel=1e-3)


def test_a_placeholder_that_became_a_number_is_a_difference():
    """A mask that is off by one differs nowhere else; another fill of that size is none."""
    expected = np.array([0.5, -0.25, 1.0, -1e9], np.float32)

    assert measure(expected, np.array([0.5, -0.25, 1.0, 0.75], np.float32)).error == np.inf
    assert not measure(expected, np.array([0.5, -0.25, 1.0, -1.2e9], np.float32)).is_wrong


def test_integers_differ_altogether_or_not_at_all():
    """One wrong index is as wrong as many."""
    assert measure(np.array([5, 70000]), np.array([5, 70001])).error == 1
    assert measure(np.array([True]), np.array([True])).error == 0


@pytest.mark.parametrize("actual", [2**60 + 1, 2**60 - 1])
def test_large_integers_differ_by_one(actual: int):
    """Hashes and ids have more digits than float64."""
    found = measure(np.array([7, 2**60]), np.array([7, actual]))

    assert (found.error, found.max_abs_diff, found.expected_at, found.actual_at) == (1.0, 1.0, 2**60, actual)
