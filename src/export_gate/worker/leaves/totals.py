"""Compute norms, counts, positions and quantiles of the difference of two flat arrays, block by block."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Layout = tuple[int, int, int]
"""A shape as (outer, tolerance axis, inner)."""

BLOCK = 1 << 16
"""Entries per block: float64 temporaries fit in the cache. Even, so that both parts of a complex stay together."""
QUANTILES_PER_MILLE = (500, 900, 990, 999, 1000)


@dataclass(slots=True, kw_only=True)
class Totals:
    """Totals over all blocks of two arrays. `gap` is |P-M|, zero where either side is not finite."""

    parts: int
    gap_norms: Array
    """Largest gap for each index of the tolerance axis (a single index without an axis)."""
    scale_norms: Array
    gaps: npt.NDArray[np.float64]
    largest: Any = 0
    largest_at: int | None = None
    """Position among the real parts."""
    mismatched: int = 0
    nonfinite_mismatched: int = 0
    nonfinite_at: int | None = None
    excluded: int = 0
    """Real parts that are not finite on both sides."""
    expected_nonfinite: npt.NDArray[np.int64]
    """Elements with a NaN, +inf and -inf."""
    actual_nonfinite: npt.NDArray[np.int64]

    @classmethod
    def of(cls, e: Array, a: Array, layout: Layout, parts: int) -> Totals:
        """Totals of two flat arrays of integers or floats; `parts` entries form one element."""
        kind, length = np.float64 if e.dtype.kind == "f" else np.uint64, layout[1]
        totals = cls(
            parts=parts,
            gap_norms=np.zeros(length, kind),
            scale_norms=np.zeros(length, kind),
            # Memory that is never written costs nothing: blocks without a difference leave it alone.
            gaps=np.zeros(e.size),
            expected_nonfinite=np.zeros(3, np.int64),
            actual_nonfinite=np.zeros(3, np.int64),
        )
        with np.errstate(all="ignore"):
            for start, first, shape in blocks_of(*layout):
                stop = start + math.prod(shape)
                totals._add(e[start:stop].reshape(shape), a[start:stop].reshape(shape), start, first)
        return totals

    def _add(self, e: Array, a: Array, start: int, first: int) -> None:
        """Add one block [rows, indices of the axis, inner], whose first element has number `start`."""
        unequal = e != a
        if e.dtype.kind == "f":
            gap = np.abs(np.subtract(a, e, dtype=np.float64))
            scale = np.abs(e)
            if not np.isfinite(gap.max()):  # max propagates NaN, so one check covers all non-finite entries
                both_nan, finite = np.isnan(e) & np.isnan(a), np.isfinite(e) & np.isfinite(a)
                unequal &= ~both_nan
                gap, scale = np.where(finite, gap, 0.0), np.where(finite, scale, 0)
                self._add_nonfinite(e, a, start)
                self.excluded += int(finite.size - np.count_nonzero(finite))
        else:
            gap, scale = integer_gap(e, a)
        indices = slice(first, first + e.shape[1])
        np.maximum(self.scale_norms[indices], scale.max(axis=(0, 2)), out=self.scale_norms[indices])
        self.mismatched += int(np.count_nonzero(self._of_elements(unequal)))
        largest = gap.max()
        if largest == 0:
            return
        np.maximum(self.gap_norms[indices], gap.max(axis=(0, 2)), out=self.gap_norms[indices])
        self.gaps[start : start + gap.size] = gap.reshape(-1)
        if largest > self.largest:
            self.largest, self.largest_at = largest, start + int(gap.argmax())

    def _add_nonfinite(self, e: Array, a: Array, start: int) -> None:
        masks = [(mask(e), mask(a)) for mask in (np.isnan, np.isposinf, np.isneginf)]
        for number, (in_e, in_a) in enumerate(masks):
            self.expected_nonfinite[number] += np.count_nonzero(self._of_elements(in_e))
            self.actual_nonfinite[number] += np.count_nonzero(self._of_elements(in_a))
        differ = self._of_elements(np.logical_or.reduce([in_e != in_a for in_e, in_a in masks]))
        self.nonfinite_mismatched += int(np.count_nonzero(differ))
        if self.nonfinite_at is None and differ.any():
            self.nonfinite_at = start // self.parts + int(differ.argmax())

    def _of_elements(self, mask: Array) -> Array:
        """Whether any part of each element is set."""
        flat: Array = mask.reshape(-1)
        return flat if self.parts == 1 else np.logical_or.reduce(flat.reshape(-1, self.parts), axis=1)

    def quantiles(self) -> tuple[float, ...]:
        """Gaps at each quantile, rounded up to the next one that occurs; reorders `gaps`."""
        finite = self.gaps.size - self.excluded
        if finite == 0:
            return ()
        # Excluded parts are zeros in `gaps`. Zeros sort first, so they only shift the ranks.
        # `-(-a // b)` rounds up.
        ranks = [self.excluded + -(-q * (finite - 1) // 1000) for q in QUANTILES_PER_MILLE]
        if self.largest != 0:
            self.gaps.partition(sorted(set(ranks)))
        return tuple(float(self.gaps[rank]) for rank in ranks)


def layout_of(shape: tuple[int, ...], axis: int | None, parts: int) -> Layout:
    """The shape as (outer, axis, inner); without an axis, everything is inner."""
    if axis is None:
        return 1, 1, math.prod(shape) * parts
    axis %= len(shape)
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]) * parts


def blocks_of(outer: int, length: int, inner: int) -> Iterator[tuple[int, int, tuple[int, int, int]]]:
    """Contiguous blocks in C order: (first element, first index of the axis, (rows, indices, inner))."""
    row = length * inner
    if row <= BLOCK:
        step = BLOCK // row
        for at in range(0, outer, step):
            yield at * row, 0, (min(step, outer - at), length, inner)
    elif inner <= BLOCK:
        step = BLOCK // inner
        for at in range(outer):
            for first in range(0, length, step):
                yield at * row + first * inner, first, (1, min(step, length - first), inner)
    else:
        for at in range(outer * length):
            for offset in range(0, inner, BLOCK):
                yield at * inner + offset, at % length, (1, 1, min(BLOCK, inner - offset))


def integer_gap(e: Array, a: Array) -> tuple[Array, Array]:
    """|a - e| and |e| as uint64, exact: the subtraction wraps around to the true magnitude."""
    wide = np.int64 if e.dtype.kind == "i" else np.uint64
    e, a = e.astype(wide, copy=False), a.astype(wide, copy=False)
    unsigned_e, unsigned_a = e.view(np.uint64), a.view(np.uint64)
    gap = np.where(a >= e, unsigned_a - unsigned_e, unsigned_e - unsigned_a)
    return gap, np.where(e < 0, np.negative(unsigned_e), unsigned_e)
