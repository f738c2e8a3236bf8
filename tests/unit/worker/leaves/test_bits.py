"""Arrays are the same if their bits are, in the order of their elements."""

from __future__ import annotations

import numpy as np
import pytest

from export_gate.worker.leaves import bits
from export_gate.worker.leaves.bits import same_bits

TABLE = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture(autouse=True)
def short_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several blocks for a small table, the last of them shorter."""
    monkeypatch.setattr(bits, "_BLOCK", 5)


def test_shapes_and_strides_do_not_matter() -> None:
    """A converter may store a weight in another shape, or with its axes moved."""
    assert same_bits(TABLE, TABLE.reshape(2, 6))
    assert same_bits(TABLE.T, np.ascontiguousarray(TABLE.T))
    assert not same_bits(TABLE.T, TABLE)


@pytest.mark.parametrize("place", [0, 4, 5, 11])
def test_one_element_in_any_block_is_enough(place: int) -> None:
    """The last block counts as the first does."""
    other = TABLE.copy()
    other.reshape(-1)[place] = np.nextafter(other.reshape(-1)[place], np.float32(100))
    assert not same_bits(TABLE, other)
    assert not same_bits(np.asfortranarray(TABLE), other)


def test_bits_count_and_not_values() -> None:
    """A negative zero is not zero, and a NaN is itself."""
    assert not same_bits(np.zeros(2), -np.zeros(2))
    assert same_bits(np.full(2, np.nan), np.full(2, np.nan))


def test_other_dtypes_and_sizes_are_not_the_same() -> None:
    """Even where the bytes are."""
    assert not same_bits(TABLE, TABLE.view(np.int32))
    assert not same_bits(TABLE, TABLE[:2])
    assert same_bits(TABLE[:0], np.zeros(0, np.float32))
    assert same_bits(np.float32(1), np.ones((1, 1), np.float32))
