"""Integers that a float cannot tell apart."""

from __future__ import annotations

import report_samples as samples

from export_gate.rules.numbers import spread


def test_large_integers_keep_their_digits_as_far_as_they_are_known():
    """Two that differ do not look exact and equal."""
    found = samples.comparison(
        expected_dtype="int64", actual_dtype="int64", expected_at=2.0**40, actual_at=2.0**60, elements=9
    )
    assert spread(found, "eager", "pt2")[0].endswith("eager 1099511627776, pt2 about 1152921504606846976")
