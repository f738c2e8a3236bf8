"""Run `torch.cond` as plain Python, and take its other branch where rounding alone decides.

Under a dispatch mode torch.cond is refused. A condition such as `x.sum() > 0` has no right answer in float32 if the sum
is within its own rounding error of 0: eager and an artifact may then take different branches, and neither is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

COMPARISONS = frozenset(("gt", "ge", "lt", "le"))
FACTOR = 2.0
"""A gap within this many times the error that float32 made in it is decided by rounding."""


@dataclass(slots=True)
class Conditions:
    """The conditions that one forward met."""

    errors: Sequence[float] = ()
    """What float32 adds to each gap: with them, conditions that rounding decides are taken the other way."""
    gaps: list[float | None] = field(default_factory=list)
    """The difference of the two sides, of each condition in turn; None if it is not one comparison."""
    turned: int = 0
    """Conditions taken the other way."""
    _compared: dict[int, tuple[torch.Tensor, float]] = field(default_factory=dict)

    def note(self, result: torch.Tensor, sides: Sequence[Any]) -> None:
        """Take in a comparison of two single values."""
        first, second = (_value(side) for side in sides)
        self._compared[id(result)] = (result, first - second)

    def take(self, pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()) -> Any:
        """`torch.cond` in plain Python."""
        gap = self._compared[id(pred)][1] if id(pred) in self._compared else None
        error = self.errors[len(self.gaps)] if len(self.gaps) < len(self.errors) else 0.0
        self.gaps.append(gap)
        # Without an error of float32, both sides are exact, and a tie is a tie.
        is_open = gap is not None and error > 0 and abs(gap) <= FACTOR * error
        self.turned += is_open
        return (true_fn if bool(pred) != is_open else false_fn)(*operands)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Within it, conditions run here."""
        plain = torch.cond
        torch.cond = self.take
        try:
            with _Compared(self):
                yield
        finally:
            torch.cond = plain


def errors_of(pairs: Iterable[tuple[Conditions, Conditions]]) -> tuple[float, ...]:
    """The largest difference of each gap between forwards in float32 and in float64 at the same inputs."""
    found: dict[int, float] = {}
    for narrow, wide in pairs:
        for at, (one, other) in enumerate(zip(narrow.gaps, wide.gaps, strict=False)):
            error = 0.0 if one is None or other is None else abs(one - other)
            found[at] = max(found.get(at, 0.0), error)
    return tuple(found.values())


class _Compared(TorchDispatchMode):  # type: ignore[misc] # torch leaves it untyped
    def __init__(self, conditions: Conditions) -> None:
        super().__init__()
        self._conditions = conditions

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operator, and note what it compares."""
        del types
        result = func(*args, **(kwargs or {}))
        if func.overloadpacket.__name__ in COMPARISONS and result.numel() == 1:
            self._conditions.note(result, args[:2])
        return result


def _value(side: Any) -> float:
    # Eager compares a float32 tensor with a number rounded to float32.
    return float(side) if isinstance(side, torch.Tensor) else float(np.float32(side))
