"""Tell answers apart by all their bits, which is quicker than to compare them and needs no copy of both."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from export_gate.worker.leaves.values import Leaf

_BLOCK = 1 << 20
"""Elements that are compared at once."""


def same_bits(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> bool:
    """Whether two arrays hold the same bits in their order of elements, whatever their shapes and strides.

    In blocks, as a copy of a large table may be the largest thing in memory; most arrays differ in the first.
    """
    if (one.dtype, one.size) != (other.dtype, other.size):
        return False
    # `flat` reads strided elements in order and copies only what is asked for; `reshape` would copy them all.
    one_flat, other_flat = (array.reshape(-1) if array.flags.c_contiguous else array.flat for array in (one, other))
    blocks = (slice(start, start + _BLOCK) for start in range(0, one.size, _BLOCK))
    return all(np.array_equal(one_flat[i].view(np.uint8), other_flat[i].view(np.uint8)) for i in blocks)


def digest_of(leaves: Iterable[Leaf], further: str = "") -> str:
    """A digest of names, dtypes, shapes and all bits; NaNs with other payloads differ.

    Args:
        leaves: of one input or answer.
        further: what else tells it apart.
    """
    total = hashlib.blake2b(further.encode(), digest_size=16)
    for leaf in leaves:
        total.update(f"{leaf.name} {leaf.dtype} {leaf.constant}\n".encode())
        if leaf.value is not None:
            total.update(f"{leaf.value.shape}".encode() + leaf.value.tobytes())
    return total.hexdigest()
