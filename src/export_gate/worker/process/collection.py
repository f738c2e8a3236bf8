"""Control Python's garbage collector: do not run it while millions of long-lived objects are created."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Make what is made inside without looking for garbage among it.

    Importing torch and tracing a graph make objects by the million, and each search walks all that there are: a
    quarter of a small model's whole run, a twentieth of that of 110 million parameters. Weights are not held for
    longer: they are counted, not searched for.
    """
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def keep_for_good() -> None:
    """Exclude all existing objects from later collections; forked children then share their memory for longer."""
    gc.freeze()
