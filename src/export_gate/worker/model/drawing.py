"""Find the line of the project that draws random numbers or reads the clock, from one run of eager."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from export_gate.wall.source import SourceLine
from export_gate.worker.model.writing import writing_line
from export_gate.worker.process.failures import is_own, quoted_line

CLOCKS = ("time.time", "time.time_ns", "time.monotonic", "time.perf_counter", "datetime.now", "datetime.utcnow")
DRAWS = ("bernoulli", "dropout", "exponential_", "multinomial", "normal", "poisson", "rand", "uniform_", "urandom")
"""How the names of functions begin that draw: torch's, NumPy's and those of the standard library."""
UNFILLED = ("empty",)
"""Functions that return memory as it is; what they return is usually overwritten."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A call of the project that may return something else each time."""

    name: str
    """`random.uniform`, `torch.randn_like`, `time.time`."""
    source: SourceLine


def drawing_line(run: Callable[[], object], roots: tuple[Path, ...]) -> Drawn | None:
    """The first call that draws, else that reads the clock, else that returns unfilled memory; None without one.

    Calls in libraries count for the project's line that leads to them.
    """
    watch = _Watch(roots)
    before = sys.getprofile()
    sys.setprofile(watch.see)
    try:
        run()
    finally:
        sys.setprofile(before)
    found = next((watch.found[kind] for kind in ("draws", "clock", "unfilled") if kind in watch.found), None)
    return None if found is None else Drawn(found[0], quoted_line(*found[1]))


def draws(drawn: Drawn) -> bool:
    """Whether the call draws, and does not only read the clock or unfilled memory."""
    return drawn.name.rpartition(".")[2].startswith(DRAWS)


def numpy_line(run: Callable[[], object], roots: tuple[Path, ...]) -> Drawn | None:
    """The line at which a generator of NumPy's moves, the global one or another: no profile shows their functions."""
    # By `type`: `isinstance` asks an object for its class, and a proxy may do anything then.
    kept = [each for each in gc.get_objects() if issubclass(type(each), (np.random.Generator, np.random.RandomState))]
    line = writing_line(run, lambda: [_numpy_state(), *map(_state_of, kept)], roots)
    return None if line is None else Drawn("numpy.random", line)


def _numpy_state() -> object:
    state = np.random.get_state(legacy=False)  # noqa: NPY002 - the one that models use
    # A normal draw makes two numbers, and keeps the second.
    return state["state"]["pos"], state["has_gauss"]


def _state_of(generator: np.random.Generator | np.random.RandomState) -> str:
    if isinstance(generator, np.random.Generator):
        return str(generator.bit_generator.state)
    return str(generator.get_state(legacy=False))


def _kind(function: Any) -> tuple[str, str] | None:
    """What a built-in function does, with its name as the user calls it."""
    name, owner = getattr(function, "__name__", ""), getattr(function, "__self__", None)
    place = getattr(owner, "__name__", None) or type(owner).__name__
    # torch's functions belong to nothing.
    shown = f"torch.{name}" if owner is None else f"{place.rpartition('.')[2]}.{name}"
    if shown in CLOCKS:
        return "clock", shown
    if name.startswith(DRAWS):
        return "draws", shown
    return ("unfilled", shown) if name.startswith(UNFILLED) and shown.startswith("torch.") else None


@dataclass(slots=True)
class _Watch:
    roots: tuple[Path, ...]
    found: dict[str, tuple[str, tuple[str, int]]] = field(default_factory=dict)
    """Kind -> the first call of it, and its place."""

    def see(self, frame: FrameType, event: str, called: Any) -> None:
        """Note a call of a built-in function; Python's own only lead to those."""
        kind = _kind(called) if event == "c_call" else None
        if kind is None or kind[0] in self.found:
            return
        at: FrameType | None = frame
        inner = frame
        while at is not None and not is_own(at.f_code.co_filename, self.roots):
            inner, at = at, at.f_back
        if at is not None:
            # `random.uniform` of the standard library calls `Random.random`, which no user wrote.
            name = kind[1] if inner is frame and at is frame else _written(inner, kind[1])
            self.found[kind[0]] = name, (at.f_code.co_filename, at.f_lineno)


def _written(frame: FrameType, name: str) -> str:
    """The library's function that the project called."""
    module = str(frame.f_globals.get("__name__", "")).replace("torch.nn.functional", "F")
    return f"{module}.{frame.f_code.co_name}" if module in ("random", "F", "secrets", "uuid") else name
