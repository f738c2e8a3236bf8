"""What was freed is the system's again before work begins that needs memory."""

from __future__ import annotations

import gc
import platform
from pathlib import Path

import numpy as np
import pytest

from export_gate.worker.process.collection import uncollected

MEBIBYTE = 1 << 20


def _resident() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can give memory back")
def test_freed_memory_goes_back_although_something_above_it_is_in_use():
    """By itself, glibc gives back only what lies above everything that is in use."""
    arrays = [np.ones(12_500) for _ in range(2_000)]
    del arrays[:-1]
    before = _resident()
    with uncollected():
        assert before - _resident() > 100 * MEBIBYTE
        assert not gc.isenabled()
    assert gc.isenabled()
    assert len(arrays) == 1
