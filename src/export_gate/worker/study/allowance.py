"""How long experiments after a failure may take, so that a red run costs at most half as much again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

MOST_S, LEAST_S = 20.0, 3.0
"""For one model. The least is for models that take a second altogether."""
TRIALS_S = 6.0
"""For other ways to convert a program, after the experiments that showed the file to be wrong."""
LEAST_GIVEN_S = MOST_S
"""For a file that was handed in: its run had no export, without which nothing can be said of its nodes."""


@dataclass(slots=True, kw_only=True)
class Allowance:
    """The time that is left for experiments on one model."""

    is_off: bool = False
    """Nobody wants experiments."""
    started: float = field(default_factory=time.perf_counter)
    spent_s: float = 0.0

    @property
    def left_s(self) -> float:
        """20 s in all, and no more than half of what the run took so far."""
        return self.left_of(LEAST_S)

    def left_of(self, least_s: float) -> float:
        """The same with another least."""
        if self.is_off:
            return 0.0
        run_s = time.perf_counter() - self.started - self.spent_s
        return max(min(MOST_S, max(run_s / 2, least_s)) - self.spent_s, 0.0)

    @contextmanager
    def spending(self) -> Iterator[None]:
        """Count the time of the block."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.spent_s += time.perf_counter() - begun
