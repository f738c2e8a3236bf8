"""Ranges of values in a lock, before and now."""

from __future__ import annotations

import math

from export_gate.rules.lock.record import LockedDim
from export_gate.rules.lock.span import Span

DIMS = {"seq": LockedDim(min=1, max=8)}


def test_an_infinite_bound_is_compared_with_an_expression():
    """JSON reads `1e999` as an infinity: a lock that was edited by hand must not end the run."""
    before, now = Span.of((0.0, math.inf), {}), Span.of((0.0, "seq-1"), {})
    assert before.first_outside(now, DIMS) == "inf"
    assert now.first_outside(now, DIMS) == ""
