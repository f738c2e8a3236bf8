"""Protect the gate's own code in the project's process, and the functions with which it decides.

Project code shares the process with the code that observes it. It may replace functions of numpy, json, torch or the
builtins for its own ends, or (by no honest means) those of the gate. So both are remembered before any of it is
imported, and put back whenever project code returns; what it replaced of others is there again while it runs. This
keeps code from changing how its outputs are judged. It cannot keep code from giving false outputs.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import attrgetter, is_
from typing import Any, ParamSpec, TypeVar

from export_gate.worker.process.genuine import foreign_places, own_functions, own_places
from export_gate.worker.process.replaced import Named, Place, Whole

P = ParamSpec("P")
Result = TypeVar("Result")

MADE_OF = tuple(map(attrgetter, ("__code__", "__defaults__", "__kwdefaults__")))
"""What runs when a function is called."""


@dataclass(slots=True, kw_only=True)
class Watch:
    """Everything that is held as it was."""

    own: Whole
    functions: tuple[types.FunctionType, ...]
    """The gate's own, whose code and defaults can be replaced without replacing the function."""
    made_of: tuple[tuple[Any, ...], ...]
    """What `MADE_OF` reads off each of them."""
    foreign: Named
    theirs: list[tuple[Place, str, Any]] = field(default_factory=list)
    """What the project put in place of the foreign ones; it is there while the project's code runs."""
    inside: bool = False
    """Whether the project's code runs."""
    found: dict[str, None] = field(default_factory=dict)
    """What of the gate's own was replaced."""


_CURRENT: Watch | None = None
"""The one of this process, while a model is observed."""
_LISTENING: list[bool] = []
"""Not empty once this process, or the one it was copied from, hears of functions that are changed."""
_CHANGED: list[bool] = []
"""Not empty if the code or the defaults of some function were replaced since the gate's own were last compared."""


@contextmanager
def watched() -> Iterator[Callable[[], tuple[str, ...]]]:
    """Hold everything as it is now; yields what puts it back and says which of the gate's own was replaced so far."""
    global _CURRENT  # noqa: PLW0603 - what is watched is the process
    functions = tuple(own_functions())
    _CURRENT = watch = Watch(
        own=Whole(own_places()),
        functions=functions,
        made_of=tuple(tuple(map(part, functions)) for part in MADE_OF),
        foreign=Named(foreign_places()),
    )
    # Once: an audit hook cannot be removed, and a forked copy keeps its parent's.
    if not _LISTENING:
        sys.addaudithook(_notice)
        _LISTENING.append(True)

    def replaced() -> tuple[str, ...]:
        _leave(watch)
        return tuple(sorted(watch.found))

    try:
        yield replaced
    finally:
        _leave(watch)
        _CURRENT = None


def _notice(
    event: str,
    arguments: tuple[Any, ...],
    *,
    events: frozenset[str] = frozenset({"object.__setattr__", "object.__delattr__"}),
    parts: frozenset[str] = frozenset({"__code__", "__defaults__", "__kwdefaults__"}),
    changed: list[bool] = _CHANGED,
) -> None:
    """Python reports whoever replaces a function's code or defaults, so they need no comparison after every call."""
    if event in events and arguments[1] in parts:
        changed.append(True)


def guarded(function: Callable[P, Result]) -> Callable[P, Result]:
    """The project's function, which finds what it replaced in place; when it returns, all is as it was.

    What puts it back is bound here, before the call: nothing that the function replaces is looked up after it.
    """
    watch, enter, leave = _CURRENT, _enter, _leave

    def call(*args: P.args, **kwargs: P.kwargs) -> Result:
        if watch is None:
            return function(*args, **kwargs)
        enter(watch)
        try:
            return function(*args, **kwargs)
        finally:
            leave(watch)

    return call


def _enter(watch: Watch) -> None:
    if not watch.inside:
        for place, name, new in watch.theirs:
            place.put(name, new)
    watch.inside = True


def _leave(
    watch: Watch,
    *,
    put: Any = Place.put,
    look_foreign: Any = Named.changed,
    look_own: Any = Whole.changed,
    all: Any = all,  # noqa: A002 - bound as in `Named.changed`
    map: Any = map,  # noqa: A002
    zip: Any = zip,  # noqa: A002
    is_: Any = is_,
    parts: Any = MADE_OF,
    code_changed: list[bool] = _CHANGED,
) -> None:
    """Put back what is not as it was; inner calls of the project's code have left already."""
    global _CURRENT  # noqa: PLW0603 - as above
    # Foreign functions first: what follows looks up builtins by name, and must get the genuine ones.
    changed = look_foreign(watch.foreign)
    for place, (name, old, _) in changed:
        put(place, name, old)
    if watch.inside:
        watch.theirs.clear()
    watch.theirs += [(place, name, new) for place, (name, _, new) in changed]
    watch.inside = False
    if code_changed and not all(
        all(map(is_, map(part, watch.functions), held)) for part, held in zip(parts, watch.made_of)
    ):
        _restore_code(watch)
    code_changed.clear()
    for place, (name, old, _) in look_own(watch.own):
        watch.found[f"{place.name}.{name}"] = None
        put(place, name, old)
    if _CURRENT is not watch:
        watch.found[f"{__name__}._CURRENT"] = None
        _CURRENT = watch


def _restore_code(watch: Watch) -> None:
    for function, *held in zip(watch.functions, *watch.made_of, strict=True):
        if not all(part(function) is old for part, old in zip(MADE_OF, held, strict=True)):
            watch.found[f"{function.__module__}.{function.__qualname__}"] = None
            function.__code__, function.__defaults__, function.__kwdefaults__ = held
