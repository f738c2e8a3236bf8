"""Run `torch.cond` as plain Python, and take its other branch where rounding alone decides.

Under a dispatch mode torch.cond is refused. A condition such as `x.sum() > 0` has no right answer in float32 if the sum
is within its own rounding error of 0: eager and an artifact may then take different branches, and neither is wrong.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

FACTOR = 2.0
"""A gap within this many times the error that float32 made in it is decided by rounding."""
LARGEST = 1 << 16
"""Elements of a comparison whose gaps are kept."""


@dataclass(slots=True)
class Conditions:
    """The conditions that one forward met."""

    errors: Sequence[float] = ()
    """What float32 adds to each gap: with them, conditions that rounding decides are taken the other way."""
    gaps: list[float | None] = field(default_factory=list)
    """How far each condition in turn is from turning, positive where it holds; None if no comparison makes it."""
    turned: int = 0
    """Conditions taken the other way."""
    _compared: dict[int, tuple[torch.Tensor, torch.Tensor]] = field(default_factory=dict)
    """By id: a result, kept so that its id is not given away, and its gaps."""

    def note(self, func: Any, result: torch.Tensor, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """Take in an operator that makes a condition, or a part of one."""
        name = func.overloadpacket.__name__.removesuffix("_")
        known = [self.gap_of(each) for each in args]
        found: torch.Tensor | None = None
        if name in COMPARED:
            found = COMPARED[name](*map(_exact, args[:2]))
        elif name in COMBINED and any(gap is not None for gap in known):
            sides = [_certain(each) if gap is None else gap for gap, each in zip(known, args, strict=True)]
            found = COMBINED[name](*sides)
        elif name in REDUCED and known[0] is not None and known[0].numel():
            found = REDUCED[name](known[0], *args[1:], **kwargs)
        elif name in MOVED and known[0] is not None:
            found = func(known[0], *args[1:], **kwargs)
        # In place, a result is a tensor that may be known with other values.
        self._compared.pop(id(result), None)
        if found is not None:
            self._compared[id(result)] = result, found

    def gap_of(self, value: Any) -> torch.Tensor | None:
        """The gaps of a tensor that was noted."""
        found = self._compared.get(id(value))
        return None if found is None else found[1]

    def take(self, pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()) -> Any:
        """`torch.cond` in plain Python."""
        found = self.gap_of(pred)
        gap = None if found is None else float(found)
        error = self.errors[len(self.gaps)] if len(self.gaps) < len(self.errors) else 0.0
        self.gaps.append(gap)
        # Without an error of float32, both sides are exact, and a tie is a tie.
        is_open = gap is not None and error > 0 and abs(gap) <= FACTOR * error
        self.turned += is_open
        return (true_fn if bool(pred) != is_open else false_fn)(*operands)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Within it, conditions run here."""
        before = [(space, name, space[name]) for space, name in _names()]
        for space, name, _ in before:
            space[name] = self.take
        try:
            with _Compared(self):
                yield
        finally:
            for space, name, cond in before:
                space[name] = cond


PLAIN = torch.cond


@functools.cache
def _names() -> tuple[tuple[dict[str, Any], str], ...]:
    """Where modules have `torch.cond`: `from torch import cond` makes a name of the project's own."""
    modules = [module for name, module in list(sys.modules.items()) if name != __name__]
    spaces = [getattr(module, "__dict__", {}) for module in modules]
    return tuple((space, name) for space in spaces for name, value in list(space.items()) if value is PLAIN)


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
        if isinstance(result, torch.Tensor) and result.dtype == torch.bool and result.numel() <= LARGEST:
            self._conditions.note(func, result, args, kwargs or {})
        return result


def _exact(side: Any) -> torch.Tensor:
    # Eager compares a float32 tensor with a number rounded to float32.
    return torch.as_tensor(np.float32(side) if isinstance(side, float) else side).double()


def _certain(value: Any) -> torch.Tensor:
    """The gaps of what no rounding turns."""
    return torch.where(torch.as_tensor(value), torch.inf, -torch.inf).double()


Gaps = Callable[..., torch.Tensor]
COMPARED: dict[str, Gaps] = {
    "gt": lambda one, other: one - other,
    "ge": lambda one, other: one - other,
    "lt": lambda one, other: other - one,
    "le": lambda one, other: other - one,
}
COMBINED: dict[str, Gaps] = {
    **dict.fromkeys(("logical_and", "bitwise_and"), torch.minimum),
    **dict.fromkeys(("logical_or", "bitwise_or"), torch.maximum),
    **dict.fromkeys(("logical_not", "bitwise_not"), torch.neg),
    **dict.fromkeys(
        ("logical_xor", "bitwise_xor"),
        lambda one, other: torch.maximum(torch.minimum(one, -other), torch.minimum(-one, other)),
    ),
}
"""What has to change before `a and b` turns is the nearer of both, and so on."""
REDUCED: dict[str, Gaps] = {
    "any": lambda gaps, dim=(), keepdim=False: gaps.amax(dim, keepdim),
    "all": lambda gaps, dim=(), keepdim=False: gaps.amin(dim, keepdim),
}
MOVED = frozenset((
    "view", "reshape", "_unsafe_view", "squeeze", "unsqueeze", "select", "slice", "expand", "permute", "transpose", "t",
    "clone", "detach", "alias",
))  # fmt: skip
