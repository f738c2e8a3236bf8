"""Record how the error of an output is distributed, for charts: a histogram and a coarse map.

A picture is made only if a control input is worse than all before it, so a run makes few and keeps one per output.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from export_gate.wall.observation import CaseResult, Comparison, ErrorPicture
from export_gate.worker.leaves.compare import flat_reals
from export_gate.worker.leaves.totals import BLOCK, integer_gap
from export_gate.worker.leaves.values import Leaf

Array = npt.NDArray[Any]
Gaps = npt.NDArray[np.float64]

STEPS_PER_DECADE = 4
STEPS = 24
"""Bins of the histogram: six decades below the largest error."""
CELLS = 32


@dataclass(slots=True)
class Gallery:
    """The picture of each output at its worst control input so far."""

    worst: dict[str, tuple[float, ErrorPicture]] = field(default_factory=dict)

    def look(self, result: CaseResult, expected: Sequence[Leaf], actual: Sequence[Leaf]) -> None:
        """Look at one comparison, and keep its picture if it is the worst so far."""
        if not result.outputs:
            return
        pairs = [(e.value, a.value) for e, a in zip(expected, actual, strict=True) if e.value is not None]
        for comparison, (e, a) in zip(result.outputs, pairs, strict=True):
            badness = _badness(comparison)
            known = self.worst.get(comparison.output)
            if badness > (known[0] if known else 0.0) and a is not None:
                self.worst[comparison.output] = badness, draw(comparison, result.case, e, a)

    def pictures(self) -> tuple[ErrorPicture, ...]:
        """The pictures, in the order of the outputs' first difference."""
        return tuple(picture for _, picture in self.worst.values())


def _badness(comparison: Comparison) -> float:
    """Grows like measured / allowed if atol equals rtol, as by default; 0 if there is nothing to draw."""
    if comparison.elements < 2:  # noqa: PLR2004 - a single number has no spread
        return 0.0
    if comparison.nonfinite_mismatched:
        return math.inf
    return comparison.max_abs_diff / (1.0 + comparison.expected_max_abs)


def draw(comparison: Comparison, case: str, expected: Array, actual: Array) -> ErrorPicture:
    """The picture of two arrays of one shape and dtype."""
    where = comparison.where if comparison.nonfinite_where is None else comparison.nonfinite_where
    apart = comparison.sentinels.max_abs_diff if comparison.sentinels else 0.0
    largest = max(comparison.max_abs_diff, apart)
    if apart > comparison.max_abs_diff and comparison.nonfinite_where is None:
        largest_at = np.unravel_index(int(_gaps(expected, actual).argmax()), expected.shape)
        where = tuple(map(int, largest_at))  # a sentinel's, which the comparison counts apart
    at = where or (0,) * expected.ndim
    axes = tuple([axis for axis, size in enumerate(expected.shape) if size > 1][-2:])
    slices = tuple(slice(None) if axis in axes else at[axis] for axis in range(expected.ndim))
    grid = _grid(np.atleast_2d(expected[slices]), np.atleast_2d(actual[slices]))
    equal, unequal = _spread(flat_reals(expected), flat_reals(actual), largest)
    return ErrorPicture(
        output=comparison.output,
        case=case,
        equal=equal,
        unequal=unequal,
        where=at,
        axes=axes,
        columns=grid.shape[1],
        grid=tuple(map(_short, grid.ravel().tolist())),
    )


def _short(gap: float) -> float:
    """Round to three digits, unless the result is no longer finite: the largest float would become infinity."""
    short = float(f"{gap:.2e}")
    return gap if math.isinf(short) else short


def _spread(e: Array, a: Array, largest: float) -> tuple[int, tuple[int, ...]]:
    """How many entries are equal, and how many differ by how much."""
    counts, equal = np.zeros(STEPS, np.int64), 0
    for start in range(0, e.size, BLOCK):
        gaps = _gaps(e[start : start + BLOCK], a[start : start + BLOCK])
        equal += int(np.count_nonzero(gaps == 0))
        differing = gaps[(gaps > 0) & np.isfinite(gaps)]
        with np.errstate(divide="ignore"):  # a quotient may underflow to zero, which belongs to the last bin
            steps = np.floor(-STEPS_PER_DECADE * np.log10(differing / largest))
        counts += np.bincount(np.clip(steps, 0, STEPS - 1).astype(np.int64), minlength=STEPS)
    return equal, tuple(counts.tolist())


def _grid(e: Array, a: Array) -> Gaps:
    """The largest gap in each cell."""
    rows, columns = _edges(e.shape[0]), _edges(e.shape[1])
    cells = [
        np.maximum.reduceat(_gaps(e[top:bottom], a[top:bottom]).max(axis=0), columns[:-1])
        for top, bottom in pairwise(rows)
    ]
    return np.stack(cells)


def _edges(length: int) -> list[int]:
    # At most one cell for each entry: `reduceat` gives an empty cell the entry after it.
    cells = min(length, CELLS)
    return [length * cell // cells for cell in range(cells + 1)]


def _gaps(e: Array, a: Array) -> Gaps:
    """|P-M|: infinite where only one side is finite or NaN and inf differ, zero where both are equal."""
    if e.dtype.kind == "c":
        larger: Gaps = np.maximum(_gaps(e.real, a.real), _gaps(e.imag, a.imag))
        return larger
    if e.dtype.kind == "b":
        return np.not_equal(e, a).astype(np.float64)
    if e.dtype.kind != "f":
        exact: Gaps = integer_gap(e, a)[0].astype(np.float64)
        return exact
    with np.errstate(all="ignore"):
        gaps: Gaps = np.abs(np.subtract(a, e, dtype=np.float64))
    if np.isfinite(gaps.max(initial=0.0)):
        return gaps
    is_same = (e == a) | (np.isnan(e) & np.isnan(a))
    # In this order, because equal infinities have a difference of NaN.
    gaps[np.isnan(gaps)] = np.inf
    gaps[is_same] = 0.0
    return gaps
