"""Random numbers that are the same on every machine and for every numpy: PCG64's raw bits and exact arithmetic.

numpy may change how its Generator turns bits into normals (NEP 19), and logarithms differ between CPUs in the last
bit; the raw bit stream is fixed, and sums, shifts and remainders are exact everywhere.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_WORD = 1 << 64


class Stream:
    """A sequence of random numbers that belongs to one seed and one place (case name, input path)."""

    def __init__(self, seed: int, *place: str) -> None:
        key = "\0".join((str(seed), *place)).encode()
        self._bits = np.random.PCG64(int.from_bytes(hashlib.sha256(key).digest(), "little"))

    def generator(self) -> np.random.Generator:
        """NumPy's own generator over the same bits, for functions of the project."""
        return np.random.Generator(self._bits)

    def raw(self, count: int) -> npt.NDArray[np.uint64]:
        """Uniform 64-bit words."""
        words: npt.NDArray[np.uint64] = np.asarray(self._bits.random_raw(count), dtype=np.uint64)
        return words

    def uniform(self, count: int) -> Floats:
        """Uniform in [0, 1), multiples of 2^-53."""
        values: Floats = (self.raw(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return values

    def normal(self, count: int) -> Floats:
        """Mean 0, variance 1, within [-6, 6): the sum of twelve uniforms minus six (Irwin-Hall), exact in float64."""
        words = self.raw(4 * count).reshape(4, count)
        total = np.zeros(count, dtype=np.uint64)
        for word in words[:3]:
            for shift in (0, 16, 32, 48):
                total += (word >> np.uint64(shift)) & np.uint64(0xFFFF)
        fraction = (words[3] >> np.uint64(34)).astype(np.float64) * 2.0**-30
        # The fraction fills the bits below: twelve 16-bit numbers alone have fewer than 2^20 different sums.
        values: Floats = (total.astype(np.float64) + fraction) * 2.0**-16 - 6.0
        return values

    def integers(self, low: int, high: int, count: int) -> Integers:
        """Uniform in [low, high], both inside int64; the remainder's bias is below 2^-32 for spans below 2^32."""
        span, words = high - low + 1, self.raw(count)
        offsets = words if span == _WORD else words % np.uint64(span)
        # Offsets beyond int64 wrap around in both steps, which cancel.
        values: Integers = offsets.astype(np.int64) + np.int64(low)
        return values

    def permutation(self, count: int) -> Integers:
        """0 .. count-1 in random order."""
        return np.argsort(self.raw(count), kind="stable").astype(np.int64)
