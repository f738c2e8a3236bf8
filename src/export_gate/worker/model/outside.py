"""Find state that a model keeps outside of itself: in global variables, closures, default arguments and classes."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

from export_gate.worker.model.state import State, kind_of, snapshot_state
from export_gate.worker.model.state_changes import state_changes
from export_gate.worker.model.writing import Stamp, run_traced
from export_gate.worker.process.failures import is_own

Read = Callable[[], Any]
MOST_NAMES = 200
"""Names that are looked at: a project's forward reads few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """What a run changed outside of the model."""

    changes: tuple[str, ...]
    """As `name: before -> after`."""
    stamp: Stamp
    """Changes as soon as one of them is written again."""


def changed_outside(run: Callable[[], object], roots: tuple[Path, ...]) -> Outside | None:
    """What a run of the model changes in names that its functions read, apart from its own state; None for nothing."""
    watch = _Watch(roots=roots)
    run_traced(run, watch.enter)
    changed = {name: found for name, (read, state) in watch.names.items() if (found := state_changes(state, read()))}
    if not changed:
        return None
    reads = {name: watch.names[name][0] for name in changed}
    states = {name: snapshot_state(read()) for name, read in reads.items()}
    return Outside(
        changes=tuple(f"{name}{change}" for name, found in changed.items() for change in found),
        stamp=lambda: [state_changes(state, reads[name]()) for name, state in states.items()],
    )


@dataclass(slots=True)
class _Watch:
    """Takes a snapshot of what a function reads before its first call."""

    roots: tuple[Path, ...]
    names: dict[str, tuple[Read, State]] = field(default_factory=dict)
    known: set[CodeType] = field(default_factory=set)

    def enter(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code not in self.known and len(self.names) < MOST_NAMES:
            self.known.add(code)
            if is_own(code.co_filename, self.roots):
                for name, read in _names_of(frame):
                    if name not in self.names and kind_of(read()) != "identity":
                        self.names[name] = read, snapshot_state(read())


def _names_of(frame: FrameType) -> Iterator[tuple[str, Read]]:
    """Global variables, variables of enclosing functions, default arguments, and attributes of classes."""
    code, module = frame.f_code, frame.f_globals
    for name in (name for name in code.co_names if name in module):
        if isinstance(module[name], type):
            yield from _attributes(module[name])
        else:
            yield name, lambda name=name: module.get(name)  # type: ignore[misc] # bound per turn
    # A frame does not know its function, which alone has the cells and the defaults.
    for function in (each for each in gc.get_referrers(code) if isinstance(each, FunctionType)):
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
            yield name, lambda cell=cell: _content(cell)  # type: ignore[misc] # bound per turn
        for name, value in zip(reversed(_arguments(code)), reversed(function.__defaults__ or ()), strict=False):
            yield name, lambda value=value: value  # type: ignore[misc] # bound per turn
    if code.co_varnames and isinstance(own := frame.f_locals.get(code.co_varnames[0]), object):
        yield from _attributes(type(own))


def _attributes(kind: type) -> Iterator[tuple[str, Read]]:
    for name in [name for name, value in vars(kind).items() if not name.startswith("__") and not callable(value)]:
        if kind.__module__.partition(".")[0] not in ("torch", "builtins", "numpy"):
            yield f"{kind.__name__}.{name}", lambda name=name: vars(kind).get(name)  # type: ignore[misc] # bound per turn


def _arguments(code: CodeType) -> tuple[str, ...]:
    return code.co_varnames[: code.co_argcount]


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None
