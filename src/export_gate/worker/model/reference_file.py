"""Keep eager's outputs in a file once they would fill the memory, and map them in for as long as they are looked at."""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import IO

import numpy as np

from export_gate.worker.leaves.values import Leaf
from export_gate.worker.model.reference import Reference

IN_MEMORY = 1 << 28
"""Bytes of outputs of one model that stay in memory: most models have less, and never touch the disk."""
LEAST = 1 << 16
"""Smaller outputs take more to map than they hold."""


@dataclass(frozen=True, slots=True)
class _Filed:
    """Where an output's values are."""

    leaf: Leaf
    """Without its values."""
    offset: int
    dtype: str
    shape: tuple[int, ...]


@dataclass(slots=True, kw_only=True)
class ReferenceFile:
    """Turns answers into references; a file without a name takes what memory should not hold."""

    folder: Path
    """A folder on a disk with space for artifacts; a temporary one may itself be memory."""
    left: int = IN_MEMORY
    _file: IO[bytes] | None = field(default=None, init=False)

    def reference(self, case: str, leaves: tuple[Leaf, ...]) -> Reference:
        """The reference of one control input, in memory or not.

        Where the file cannot be written, a full disk say, it stays in memory.
        """
        self.left -= sum(leaf.value.nbytes for leaf in leaves if leaf.value is not None)
        if self.left < 0:
            try:
                return Reference(case=case, read=partial(_read, self._opened(), [self._filed(leaf) for leaf in leaves]))
            except OSError:
                pass
        return Reference.held(case, leaves)

    def _opened(self) -> IO[bytes]:
        if self._file is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._file = tempfile.TemporaryFile(dir=self.folder)  # noqa: SIM115 - open as long as a reference is
        return self._file

    def _filed(self, leaf: Leaf) -> Leaf | _Filed:
        if leaf.value is None or leaf.value.nbytes < LEAST:
            return leaf
        file = self._opened()
        # A map begins at a multiple of this.
        offset = -(-file.seek(0, 2) // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
        file.seek(offset)
        file.write(np.ascontiguousarray(leaf.value).data)
        file.flush()
        return _Filed(replace(leaf, value=None), offset, leaf.value.dtype.str, leaf.value.shape)


def _read(file: IO[bytes], parts: Sequence[Leaf | _Filed]) -> tuple[Leaf, ...]:
    return tuple(_mapped(file, part) if isinstance(part, _Filed) else part for part in parts)


def _mapped(file: IO[bytes], filed: _Filed) -> Leaf:
    """The output with its values, as a private map of the file: it can be written to like any other array."""
    dtype, count = np.dtype(filed.dtype), int(np.prod(filed.shape))
    # The array keeps the map, and with it goes the memory.
    mapped = mmap.mmap(file.fileno(), count * dtype.itemsize, access=mmap.ACCESS_COPY, offset=filed.offset)
    return replace(filed.leaf, value=np.frombuffer(mapped, dtype, count).reshape(filed.shape))
