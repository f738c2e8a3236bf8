"""Estimate how long a model's verification takes yet."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

LEAST_SHARE = 0.05
"""Before that much is done, the rate says nothing."""
MOST_RISE, MOST_RISE_S = 1.25, 1.0
"""By how much an estimate may rise at once: a stage such as an export takes long without finishing a control input."""


@dataclass(slots=True, kw_only=True)
class Remaining:
    """The time left, by how long the model took last and by the share of control inputs that are done.

    It formats itself when a line is drawn, so that it counts down between two events.
    """

    last_s: float | None = None
    clock: Callable[[], float] = time.monotonic
    _began_s: float = field(init=False)
    _ends_s: float | None = field(init=False)

    def __post_init__(self) -> None:
        self._began_s = self.clock()
        self._ends_s = None if self.last_s is None else self._began_s + self.last_s

    def note(self, share: float) -> None:
        """Take in the share of the work that is done, from 0 to 1."""
        now = self.clock()
        left, before = self._estimate(now - self._began_s, share), self.left_s
        if left is not None and before is not None:
            left = min(left, before * MOST_RISE + MOST_RISE_S)
        if left is not None:
            self._ends_s = now + left

    @property
    def left_s(self) -> float | None:
        """Seconds, never below zero; None if nothing is known."""
        return None if self._ends_s is None else max(0.0, self._ends_s - self.clock())

    def _estimate(self, elapsed_s: float, share: float) -> float | None:
        by_rate = elapsed_s * (1 - share) / share if share >= LEAST_SHARE else None
        if self.last_s is None or elapsed_s > self.last_s:
            return by_rate
        by_last = self.last_s - elapsed_s
        return by_last if by_rate is None else (1 - share) * by_last + share * by_rate

    def __format__(self, _: str) -> str:
        left = self.left_s
        # Below half a second it is no time: the estimate has run out, and the model has not ended.
        return "" if left is None or round(left) == 0 else f"{round(left) // 60}:{round(left) % 60:02} left"
