"""A deadline for work in this process, which no network is part of: results of a stranger may be made to take hours."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from export_gate.wall.errors import UserError

JUDGING_S = 50.0
"""To read, judge and render results, and to join them before: a thousand models take ten seconds, a job has minutes."""
STRANGER_S = 35.0
"""The same for a fork's results, which are rendered twice: to try it, and to publish it after the time was up."""
AGAIN_S = 1.0
"""After the deadline the interruption is repeated, in case that something took it for an error of its own."""


class OverdueError(UserError):
    """The work is not done in time."""


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Interrupt what is inside after so many seconds; without signals (Windows, another thread) nothing does.

    A thread could not: it would wait for the very work that it shall end.

    Raises:
        OverdueError: it is not done in time.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise OverdueError(f"to read and judge the results takes more than {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
