"""One deadline for all requests of a process to GitHub, which ends before the job's own time limit."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")
PATIENCE_S = 170.0
"""For all requests, slow answers and waits of a process together; a job that reports has five minutes."""


class Patience:
    """Seconds that run out, beginning with the first call of `left_s`."""

    def __init__(
        self,
        seconds: float = PATIENCE_S,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.seconds = seconds
        self.sleep = sleep
        self._now = now
        self._end: float | None = None

    def left_s(self) -> float:
        """The seconds that are left; 0 or less when the time is over."""
        if self._end is None:
            self._end = self._now() + self.seconds
        return self._end - self._now()


def within(seconds: float, ask: Callable[[], Answer]) -> Answer:
    """The answer, if it arrives in that time.

    A socket's timeout bounds only the gap between two bytes, and a server may send them one by one. Therefore a daemon
    thread makes the request, and the process can end without waiting for it.

    Raises:
        TimeoutError: it does not.
    """
    answers: list[Answer] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(ask())
        except BaseException as error:  # noqa: BLE001 - raised below, in the thread that waits
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    for error in errors:
        raise error
    if not answers:
        raise TimeoutError(f"the answer took more than {seconds:.0f} s")
    return answers[0]
