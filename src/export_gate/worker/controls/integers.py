"""Draws for integer and bool tensors."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from export_gate.worker.controls.stream import Integers, Stream

Bools = npt.NDArray[np.bool_]


def fitting_integer_families(low: int, high: int, count: int) -> tuple[str, ...]:
    """Families that give different values over [low, high] in a tensor of `count` elements."""
    if low == high:
        return ("random",)
    if count == 1:
        return ("random", "low", "high")
    if high - low == 1:  # duplicates are all low or all high, and ends are random
        return ("random", "low", "high", "distinct")
    return ("random", "low", "high", "duplicates", "distinct", "ends")


def draw_integers(family: str, low: int, high: int, count: int, stream: Stream) -> Integers:
    """`count` int64 values of a family, within [low, high]."""
    match family:
        case "low" | "high":
            return np.full(count, low if family == "low" else high, dtype=np.int64)
        case "duplicates":
            return np.full(count, stream.integers(low, high, 1)[0], dtype=np.int64)
        case "distinct":
            return _distinct(low, high, count, stream)
        case "ends":
            return np.array((low, high), dtype=np.int64)[stream.integers(0, 1, count)]
        case "spots":
            return _spots(low, high, count, stream)
        case _:
            return stream.integers(low, high, count)


def fitting_bool_families(rank: int, count: int) -> tuple[str, ...]:
    """Families that give different values in a tensor of that rank; masks of rows need a last axis."""
    single = ("random", "all-true", "all-false")
    if rank == 0 or count == 1:
        return single
    rows = ("sparse", "right-padded", "right-masked", "left-padded", "holed", "tail-off")
    return (*single, *rows, "row-off") if rank > 1 else (*single, *rows)


def draw_bools(family: str, rows: int, row: int, stream: Stream) -> Bools:
    """bool[rows, row] of a family; a row runs along the tensor's last axis."""
    if rows * row == 0:
        return np.zeros((rows, row), dtype=np.bool_)
    match family:
        case "all-true" | "all-false":
            return np.full((rows, row), family == "all-true", dtype=np.bool_)
        case "sparse":
            mask: Bools = stream.integers(0, 7, rows * row).reshape(rows, row) == 0
            # At least one, because a mask without any is `all-false`.
            mask.flat[int(stream.integers(0, rows * row - 1, 1)[0])] = True
            return mask
        case "right-padded":
            return _valid(rows, row, stream)
        case "right-masked":
            return ~_valid(rows, row, stream)
        case "left-padded":
            return _padded(rows, row, stream)[:, ::-1]
        case "holed":
            return _holed(rows, row, stream)
        case "row-off":
            mask = np.ones((rows, row), dtype=np.bool_)
            mask[int(stream.integers(0, rows - 1, 1)[0])] = False
            return mask
        case "tail-off":
            kept = int(stream.integers(row // 2, max(row - 1, row // 2), 1)[0])
            tail: Bools = np.tile(np.arange(row) < kept, (rows, 1))
            return tail
        case _:
            coins: Bools = stream.integers(0, 1, rows * row).reshape(rows, row) == 1
            return coins


KEPT_FAMILIES = ("random", "all-true", "sparse", "right-padded", "left-padded", "holed")
"""Families of a mask whose rows all keep a position; the names say what is kept, whatever 1 means."""


def draw_kept(family: str, rows: int, row: int, stream: Stream) -> Bools:
    """bool[rows, row]: the positions that a mask keeps, at least one in each row."""
    match family:
        case "right-padded":
            return _padded(rows, row, stream)
        case "all-true" | "left-padded" | "holed":
            return draw_bools(family, rows, row, stream)
        case _:
            kept = draw_bools(family, rows, row, stream)
            return kept | _one_each(rows, row, stream)


def _padded(rows: int, row: int, stream: Stream) -> Bools:
    """Each row true up to a length of its own, at least 1; one row is full and another has a single position."""
    lengths = stream.integers(1, row, rows)
    full = int(stream.integers(0, rows - 1, 1)[0])
    lengths[full] = row
    # Beside the full one, so that both are there whichever was drawn.
    if rows > 1:
        lengths[(full + 1) % rows] = 1
    padded: Bools = np.arange(row) < lengths[:, None]
    return padded


def _holed(rows: int, row: int, stream: Stream) -> Bools:
    """About five of eight positions of each row, at least one."""
    holed: Bools = (stream.integers(0, 7, rows * row).reshape(rows, row) < 5) | _one_each(rows, row, stream)  # noqa: PLR2004 - 0 to 4 of 8
    return holed


def _one_each(rows: int, row: int, stream: Stream) -> Bools:
    one: Bools = np.arange(row) == stream.integers(0, row - 1, rows)[:, None]
    return one


def _valid(rows: int, row: int, stream: Stream) -> Bools:
    """Each row true up to a length of its own, at least 1; one row is full."""
    lengths = stream.integers(1, row, rows)
    lengths[int(stream.integers(0, rows - 1, 1)[0])] = row
    valid: Bools = np.arange(row) < lengths[:, None]
    return valid


def _spots(low: int, high: int, count: int, stream: Stream) -> Integers:
    """A dark image with bright spots: most values in the lowest twelfth, one in 32 in the highest."""
    part = (high - low) // 12
    dark, bright = stream.integers(low, low + part, count), stream.integers(high - part, high, count)
    spotted: Integers = np.where(stream.integers(0, 31, count) == 0, bright, dark)
    return spotted


def _distinct(low: int, high: int, count: int, stream: Stream) -> Integers:
    """A permutation of consecutive integers; of the whole range over and over where the range is shorter."""
    span = high - low + 1
    if span >= count:
        start = int(stream.integers(low, high - count + 1, 1)[0]) if count else low
        consecutive: Integers = start + stream.permutation(count)
        return consecutive
    turns = [low + stream.permutation(span) for _ in range(-(-count // span))]
    repeated: Integers = np.concatenate(turns)[:count]
    return repeated
