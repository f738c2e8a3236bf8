"""What `export-gate calibrate` makes of measurements."""

from __future__ import annotations

import pytest
from rule_samples import CASES, case, contract, leaf, observed, rounding, target

from export_gate.report.calibration import calibrate, calibration_lines
from export_gate.rules.measure import measure
from export_gate.wall.observation import Comparison


def lines(*outputs: Comparison, noise: float | None = None) -> list[str]:
    """The table of one target with these outputs."""
    noisy = () if noise is None else (rounding(f64=noise, distance=noise),)
    seen = target(*(case(name, *outputs) for name in CASES), noise=noisy)
    return calibration_lines(measure(contract(), observed(seen)))


def test_a_tolerance_is_twice_what_was_measured():
    """`t + t * max|M|` is twice the difference, or twice the noise floor if that is larger."""
    seen = target(*(case(name, leaf(max_abs_diff=3e-6, expected_max_abs=2.0)) for name in CASES))
    (found,) = calibrate(measure(contract(), observed(seen)))
    assert found.tolerance == pytest.approx(2e-6, rel=0.1)  # rounded up
    assert found.floor is None
    assert found.is_sharp
    noisy = lines(leaf(max_abs_diff=3e-6, expected_max_abs=2.0), noise=3e-5)
    assert noisy[1].endswith("3.0e-05      {atol: 2.1e-05, rtol: 2.1e-05}")


def test_nothing_is_suggested_where_nothing_differs():
    """Any tolerance holds if nothing differs."""
    table = lines(leaf(max_abs_diff=0.0))
    assert table[1].split() == ["onnx", "logits", "exact", "any"]


def test_a_tolerance_that_cannot_tell_is_named():
    """A tolerance under which a wrong output would pass is named."""
    table = lines(leaf(max_abs_diff=0.5, expected_max_abs=1.0))
    assert table[-1].startswith("Too large to tell a right output from a wrong one: logits on onnx.")
    assert not any(line.startswith("Too large") for line in lines(leaf(max_abs_diff=1e-6, expected_max_abs=1.0)))


def test_outputs_without_rounding_have_no_row():
    """Integers are compared exactly, whatever is declared."""
    whole = leaf(expected_dtype="int64", actual_dtype="int64")
    assert lines(whole) == ["glyph-head: no floating output was compared"]
