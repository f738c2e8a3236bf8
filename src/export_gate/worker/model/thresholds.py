"""Read the constants with which a model compares its inputs: values where one step of an input decides.

Operators are seen one after another, those of an exported program or those that eager runs. A value that is an input
times a constant plus a constant is followed, because `x * 4 > 3` decides at 0.75.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from export_gate.worker.model.tables import MOVES, memory_of

COMPARING = frozenset((
    "lt", "le", "gt", "ge", "eq", "ne", "clamp", "clamp_min", "clamp_max", "clip", "maximum", "minimum", "hardtanh",
    "threshold", "relu6", "bucketize", "searchsorted", "where",
))  # fmt: skip
"""Operators, whatever their overload, that read a constant as a bound."""
STEPPING = frozenset(("floor_divide", "remainder", "fmod", "div"))
"""Operators that read it as a step: every multiple is a bound. Division only where it rounds."""
ROUNDING = {"round": 0.5, "floor": 1.0, "ceil": 1.0, "trunc": 1.0, "frac": 1.0}
"""Operators with a step of their own: ties of `round` are halves."""
CASTS = frozenset(("to", "_to_copy"))
MOST = 64
"""Elements of a constant tensor, and constants of one program, that are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """A constant and how it is read."""

    value: float
    is_step: bool
    """Its multiples matter as well."""
    offset: float = 0.0
    """Of a step: what is added to its multiples."""


Line = tuple[float, float]
"""Factor and summand by which a value follows from an input."""
IDENTITY: Line = (1.0, 0.0)


class Reader:
    """Takes operators in order; `found` has their thresholds as values of the inputs."""

    def __init__(self, inputs: Iterable[Any], values: Callable[[Any], Sequence[float]]) -> None:
        self.found: dict[Threshold, None] = {}
        self._values = values
        """The elements of an argument that is constant, else nothing."""
        self._alive = list(inputs)  # an id belongs to another object once its own is gone
        self._lines: dict[int, Line] = dict.fromkeys(map(id, self._alive), IDENTITY)

    def see(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> None:
        """One operator, by its name without the overload."""
        line = next((self._lines[id(arg)] for arg in args if id(arg) in self._lines), None)
        self.found |= dict.fromkeys(_moved(each, line or IDENTITY) for each in self._read(name, args, kwargs, line))
        followed = None if line is None else self._followed(name, args, kwargs, line)
        if followed is not None and all(map(math.isfinite, followed)) and followed[0]:
            for leaf in tree_leaves(result) if isinstance(result, (list, tuple)) else [result]:
                self._alive.append(leaf)
                self._lines[id(leaf)] = followed

    def _read(
        self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], line: Line | None
    ) -> Iterator[Threshold]:
        if line is not None and name in ROUNDING:
            yield Threshold(value=ROUNDING[name] / 10.0 ** int(kwargs.get("decimals", 0)), is_step=True)
        elif line is not None and name in CASTS and _is_rounded(args, kwargs):
            yield Threshold(value=1.0, is_step=True)
        # Without rounding, a quotient has no steps.
        elif name in COMPARING | STEPPING and (name != "div" or kwargs.get("rounding_mode")):
            for value in (value for each in (*args, *kwargs.values()) for value in self._values(each)):
                if not (name in STEPPING and value == 0):
                    yield Threshold(value=value, is_step=name in STEPPING)

    def _followed(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], line: Line) -> Line | None:
        """The result as a function of the input; None if it is no line."""
        scale, offset = line
        if name in MOVES or name in CASTS:
            return None if name in CASTS and _is_rounded(args, kwargs) else line
        if name == "neg":
            return -scale, -offset
        if name not in ("mul", "div", "add", "sub", "rsub") or kwargs.get("rounding_mode"):
            return None
        constants = [list(self._values(arg)) for arg in args[:2] if id(arg) not in self._lines]
        if len(constants) != 1 or len(constants[0]) != 1:
            return None
        return _combined(name, line, constants[0][0], float(kwargs.get("alpha", 1)), first=id(args[0]) in self._lines)


class EagerThresholds(TorchDispatchMode):  # type: ignore[misc] # torch leaves it untyped
    """Within it, a forward shows the thresholds of its inputs."""

    def __init__(self, weights: Iterable[torch.Tensor], inputs: Iterable[torch.Tensor]) -> None:
        super().__init__()
        self._weights = {memory_of(weight) for weight in weights if _is_small(weight)}
        self._made: dict[int, torch.Tensor] = {}
        """Tensors that forward makes of nothing but numbers."""
        self._reader = Reader(inputs, self._values)

    @property
    def found(self) -> tuple[Threshold, ...]:
        """Each once, in the order of the operators."""
        return tuple(self._reader.found)[:MOST]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operator, and note its constants."""
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name = func.overloadpacket.__name__
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        is_made = all(id(tensor) in self._made for tensor in tensors) or name.startswith("lift_fresh")
        if is_made and isinstance(result, torch.Tensor):
            self._made[id(result)] = result
        self._reader.see(name, args, kwargs, result)
        return result

    def _values(self, argument: Any) -> Sequence[float]:
        if isinstance(argument, torch.Tensor):
            is_known = id(argument) in self._made or memory_of(argument) in self._weights
            return [float(value) for value in argument.flatten().tolist()] if is_known and _is_small(argument) else ()
        return number(argument)


def number(argument: Any) -> Sequence[float]:
    """The number, if it is one."""
    return (float(argument),) if isinstance(argument, (int, float)) and not isinstance(argument, bool) else ()


def _is_small(tensor: torch.Tensor) -> bool:
    return tensor.numel() <= MOST and not tensor.is_complex()


def _moved(threshold: Threshold, line: Line) -> Threshold:
    """The same as values of the input."""
    scale, offset = line
    if line == IDENTITY:
        return threshold
    if threshold.is_step:
        return Threshold(value=abs(threshold.value / scale), is_step=True, offset=-offset / scale)
    return Threshold(value=(threshold.value - offset) / scale, is_step=False)


def _combined(name: str, line: Line, constant: float, alpha: float, *, first: bool) -> Line | None:
    """A line and a constant, of which the line may come first."""
    scale, offset = line
    match name:
        case "mul":
            return scale * constant, offset * constant
        case "div" if first and constant:
            return scale / constant, offset / constant
        case "add":
            return (scale, offset + alpha * constant) if first else (alpha * scale, alpha * offset + constant)
        case "sub":
            return (scale, offset - alpha * constant) if first else (-alpha * scale, constant - alpha * offset)
        case "rsub":
            return -alpha * scale, constant - alpha * offset
        case _:
            return None


def _is_rounded(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether a cast turns floats into integers."""
    # A node of a program has its tensor among its facts.
    source = args[0].meta.get("val") if args and hasattr(args[0], "meta") else next(iter(args), None)
    if not isinstance(source, torch.Tensor) or not source.is_floating_point():
        return False
    wanted = [each for each in (*args, *kwargs.values()) if isinstance(each, torch.dtype)]
    return any(not dtype.is_floating_point and not dtype.is_complex and dtype != torch.bool for dtype in wanted)
