"""How far one intermediate value is from the expected one, as a share of its size."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from export_gate.wall.nodes import GuiltyNode
from export_gate.worker.leaves.sentinels import EXTREME, sentinels
from export_gate.worker.leaves.totals import integer_gap

Array = npt.NDArray[Any]

FLOORS = {"float64": 1e-13, "float32": 8e-6, "float16": 1.6e-2}
"""Errors of one operator up to this share are rounding: some 64 units in the last place, 16 in half precision."""
COARSE_FLOOR = 0.125
"""The same for narrower floats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """The difference of one value from the expected one."""

    error: float
    """The largest difference as a share of the largest expected entry; infinite without numbers. Integers differ
    altogether or not at all.
    """
    max_abs_diff: float | None = None
    scale: float = 0.0
    """The largest expected entry."""
    expected_at: int | None = None
    """The integer at the largest difference; None for other dtypes."""
    actual_at: int | None = None
    words: str = ""
    """What differs if not finite values."""
    floor: float = 0.0
    """Errors up to this are rounding."""
    is_tie: bool = False
    """Whether both sides are indices of equal values."""

    @property
    def is_wrong(self) -> bool:
        """Whether it is more than rounding."""
        return self.error > self.floor


def with_gap(node: GuiltyNode, gap: Gap, own: Gap | None) -> GuiltyNode:
    """The node with what differs there, and how far it is with the expected inputs, if that was tried."""
    return replace(
        node,
        max_abs_diff=gap.max_abs_diff,
        expected_at=gap.expected_at,
        actual_at=gap.actual_at,
        expected_max_abs=gap.scale,
        own_max_abs_diff=own.max_abs_diff if own else None,
        words=gap.words,
        is_tie=own.is_tie if own else False,
    )


def choose_equals(values: Array, expected: Array, actual: Array) -> bool:
    """Whether two arrays of indices choose equal values of a third along some axis, which may be reduced."""
    if expected.dtype.kind != "i" or expected.shape != actual.shape or not expected.size:
        return False
    for axis in range(values.ndim):
        wanted, found = (np.expand_dims(each, axis) if each.ndim < values.ndim else each for each in (expected, actual))
        others = [(a, b) for at, (a, b) in enumerate(zip(values.shape, wanted.shape, strict=False)) if at != axis]
        is_within = min(wanted.min(), found.min()) >= 0 and max(wanted.max(), found.max()) < values.shape[axis]
        if wanted.ndim == values.ndim and all(a == b for a, b in others) and is_within:
            one, other = (np.take_along_axis(values, each, axis) for each in (wanted, found))
            if np.array_equal(one, other, equal_nan=values.dtype.kind == "f"):
                return True
    return False


def measure(expected: Array, actual: Array, *, strict_dtype: bool = False) -> Gap:
    """Compare two arrays; placeholders such as the mask's -1e9 do not count as size.

    Args:
        expected: the reference value.
        actual: the artifact's.
        strict_dtype: whether another dtype is a difference by itself.
    """
    if expected.shape != actual.shape:
        return Gap(error=math.inf, words=f"shape {list(actual.shape)}, expected {list(expected.shape)}")
    if strict_dtype and expected.dtype != actual.dtype:
        return Gap(error=math.inf, words=f"dtype {actual.dtype}, expected {expected.dtype}")
    if not expected.size:
        return Gap(error=0.0)
    if expected.dtype.kind not in "fc":
        return _exact(expected, actual)
    floor = FLOORS.get(str(expected.dtype), COARSE_FLOOR)
    flat, other = expected.reshape(-1), actual.reshape(-1)
    return _plain(flat, other, floor) or _close(_unbounded(flat), _unbounded(other), floor)


def _exact(expected: Array, actual: Array) -> Gap:
    # In float64, neighbours such as 2**60 and 2**60 + 1 are equal.
    is_whole = actual.dtype.kind in "biu"
    apart = integer_gap(expected, actual)[0] if is_whole else np.abs(np.subtract(expected, actual, dtype=np.float64))
    at = int(apart.argmax())
    largest = float(apart.reshape(-1)[at])
    return Gap(
        error=float(largest > 0),
        max_abs_diff=largest,
        scale=float(np.abs(expected.astype(np.float64)).max()),
        expected_at=int(expected.reshape(-1)[at]),
        actual_at=int(actual.reshape(-1)[at]),
    )


def _plain(expected: Array, actual: Array, floor: float) -> Gap | None:
    """The gap of values that are all finite and without placeholders, as nearly all are; None for others."""
    with np.errstate(all="ignore"):
        # In their own type, which is faster: of close values, the difference has no rounding that matters here.
        apart = expected - actual
        largest = float(np.abs(apart, out=apart).max())
    if not math.isfinite(largest) or sentinels(expected) is not None:
        return None
    # Without `np.abs`, which would be one more copy of the array.
    scale = max(abs(float(expected.max())), abs(float(expected.min())))
    return Gap(error=largest / scale if scale else float(largest > 0), max_abs_diff=largest, scale=scale, floor=floor)


def _close(expected: Array, actual: Array, floor: float) -> Gap:
    finite = np.isfinite(expected)
    # `!=` is true for two NaNs, which agree.
    is_other = (expected != actual) & ~(np.isnan(expected) & np.isnan(actual))
    moved = int((is_other & ~(finite & np.isfinite(actual))).sum())
    if moved:
        return Gap(error=math.inf, words=f"NaN or infinity in {moved} other places", floor=floor)
    far = sentinels(expected)
    # A placeholder that became a number, as where a mask is another: how large it is says nothing beside that.
    gone = 0 if far is None else int((np.abs(actual[far] - expected[far]) > np.abs(expected[far]) / 2).sum())
    if gone:
        return Gap(
            error=math.inf, words=f"other values at {gone} placeholders such as {expected[far][0]:.2g}", floor=floor
        )
    counted = finite if far is None else finite & ~far
    whole = bool(counted.all())
    e, a = (expected, actual) if whole else (expected[counted], actual[counted])
    apart = float(np.abs(np.subtract(e, a, dtype=np.float64)).max(initial=0.0))
    scale = float(np.abs(e).max(initial=0.0))
    error = apart / scale if scale else float(apart > 0)
    return Gap(error=error, max_abs_diff=apart, scale=scale, floor=floor)


def _unbounded(values: Array) -> Array:
    """Numbers at the ends of their dtype, which stand for infinity where a format prefers that."""
    if values.dtype.kind != "f":
        return values
    with np.errstate(invalid="ignore"):
        extreme = np.abs(values) >= EXTREME * float(np.finfo(values.dtype).max)
    if not extreme.any():
        return values
    return np.where(extreme & ~np.isnan(values), np.copysign(values.dtype.type(np.inf), values), values)
