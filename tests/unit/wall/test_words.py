"""Words that several sides share."""

from __future__ import annotations

import math

import pytest

from export_gate.wall.words import number_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1000001, "1000001"),
        (1000001.0, "1000001"),
        (2**63 - 1, "9223372036854775807"),
        (1e30, "1e+30"),
        (-2.0, "-2"),
        (0.1, "0.1"),
        (-math.inf, "-inf"),
    ],
)
def test_a_whole_number_has_all_its_digits(value: float, text: str):
    """Six digits would name another bound, which refuses what it should admit."""
    assert number_text(value) == text
