"""Indices that differ choose equal values, or not."""

from __future__ import annotations

import numpy as np
import pytest

from export_gate.worker.nodes.gap import choose_equals

VALUES = np.array([[3.0, 1.0, 3.0], [2.0, 2.0, 0.0]])


@pytest.mark.parametrize(
    ("expected", "actual", "is_tie"),
    [
        ([0, 1], [2, 0], True),
        ([[0], [1]], [[2], [0]], True),
        ([0, 1], [1, 0], False),
        ([0, 1], [3, 0], False),
        ([0], [0, 1], False),
        ([0.0, 1.0], [2.0, 0.0], False),
    ],
)
def test_equal_values_may_be_chosen_in_any_order(expected: object, actual: object, is_tie: bool):
    """Along an axis that stays, or that is reduced."""
    assert choose_equals(VALUES, np.array(expected), np.array(actual)) is is_tie
