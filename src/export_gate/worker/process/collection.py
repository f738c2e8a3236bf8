"""Control Python's garbage collector: do not run it while millions of long-lived objects are created."""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Create objects inside without a search for garbage among them.

    Importing torch and tracing a graph create objects by the million, and each search walks through all of them: a
    quarter of a small model's whole run, a twentieth of that of 110 million parameters. Weights are not held for
    longer, because reference counts free them.
    """
    # Garbage of before goes first: nothing frees it while the work inside needs its memory most.
    was_enabled = gc.isenabled()
    gc.collect()
    _give_back()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _give_back() -> None:
    """Return freed memory to the system, where the C library can: glibc keeps what lies below anything in use.

    BERT-base on ONNX took 1650 MB with what was left of the target before, and takes 1320 MB.
    """
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):  # musl has no such function
            ctypes.CDLL(None).malloc_trim(0)


def keep_for_good() -> None:
    """Exclude all existing objects from later collections; forked children then share their memory for longer."""
    gc.freeze()
