"""Protect the gate's own code in the project's process, and the functions with which it decides.

Project code shares the process with the code that observes it. It may replace functions of numpy, json, torch or the
builtins for its own ends, or (by no honest means) those of the gate. So both are remembered before any of it is
imported, and put back whenever project code returns; what it replaced of others is there again while it runs. This
keeps code from changing how its outputs are judged. It cannot keep code from giving false outputs.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter, contains, is_, itemgetter
from typing import Any, ParamSpec, TypeVar

from export_gate.worker.process.versions import Versions

P = ParamSpec("P")
Result = TypeVar("Result")

OWN = "export_gate"
FOREIGN = (
    "builtins", "dataclasses", "hashlib", "io", "itertools", "json", "json.encoder", "math", "os", "pathlib", "typing",
    "numpy", "numpy._core._methods", "numpy._core.fromnumeric", "numpy._core.numeric", "numpy._core.shape_base",
    "numpy._core._ufunc_config", "numpy.lib._index_tricks_impl", "numpy.lib._shape_base_impl", "torch",
)  # fmt: skip
"""Modules whose functions the gate decides with; of torch and the builtins, what the gate names (see `_is_named`)."""
FOREIGN_CLASSES = (("torch", "Tensor"), ("json.encoder", "JSONEncoder"), ("pathlib", "Path"), ("pathlib", "PurePath"))
_ABSENT = object()
Change = tuple[str, Any, Any]
MADE_OF = tuple(map(attrgetter, ("__code__", "__defaults__", "__kwdefaults__")))
"""What runs when a function is called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A module or class and what it held."""

    name: str
    owner: Any
    names: tuple[str, ...]
    values: tuple[Any, ...]
    absent: tuple[str, ...]
    """What it did not hold."""

    def changed(self, *, zip: Any = zip) -> list[Change]:  # noqa: A002 - bound as in `Named.changed`
        """Name, what it held and what it holds now, wherever that is another object."""
        space = self.owner.__dict__
        # Always by identity: `==` of what the project put there could be its own.
        now = [(name, old, space.get(name, _ABSENT)) for name, old in zip(self.names, self.values, strict=True)]
        appeared = [(name, _ABSENT, space[name]) for name in self.absent if name in space]
        return [change for change in now if change[1] is not change[2]] + appeared

    def put(
        self,
        name: str,
        value: Any,
        *,
        isinstance: Any = isinstance,  # noqa: A002 - bound as in `Named.changed`
        delattr: Any = delattr,  # noqa: A002
        type: Any = type,  # noqa: A002
    ) -> None:
        """Set one of them; what was absent is taken away."""
        if value is _ABSENT:
            delattr(self.owner, name)
        elif isinstance(self.owner, type):
            type.__setattr__(self.owner, name, value)
        else:
            self.owner.__dict__[name] = value


class Named:
    """Some names of large modules, looked at together after every call of the project: nearly always, nothing changed.

    So the dicts' versions are read first. Where one is another, there is one pass over all of them that only says
    whether anything that is held changed: in C, since some dicts change all the time, and each lookup in Python costs
    ten times as much.
    """

    def __init__(self, places: Iterable[Place]) -> None:
        self.all = tuple(places)
        # With one name alone, itemgetter would return the value itself.
        held = [place for place in self.all if place.names]
        self.reads = tuple(itemgetter(place.names[0], *place.names) for place in held)
        self.spaces = tuple(vars(place.owner) for place in held)
        self.values = tuple(value for place in held for value in (place.values[0], *place.values))
        self.absent = tuple(name for place in self.all for name in place.absent)
        self.without = tuple(vars(place.owner) for place in self.all for _ in place.absent)
        self.versions = Versions(place.owner for place in self.all)
        self.unchanged_at: object = None

    def changed(
        self,
        *,
        look: Callable[[Place], list[Change]] = Place.changed,
        zip: Any = zip,  # noqa: A002 - as said below
        all: Any = all,  # noqa: A002
        any: Any = any,  # noqa: A002
        map: Any = map,  # noqa: A002
        is_: Any = is_,
        contains: Any = contains,
        joined: Any = chain.from_iterable,
        missing: Any = KeyError,
    ) -> list[tuple[Place, Change]]:
        """What changed, and where.

        The builtins are bound as defaults: those that anybody finds by name may be the project's.
        """
        versions = self.versions.read()
        if versions == self.unchanged_at:
            return []
        try:
            held = joined([read(space) for read, space in zip(self.reads, self.spaces)])
            if all(map(is_, held, self.values)) and not any(map(contains, self.without, self.absent)):
                self.unchanged_at = versions
                return []
        except missing:
            pass  # something was deleted
        return [(place, change) for place in self.all for change in look(place)]


class Whole:
    """Small modules and classes with all they hold, in the order in which they hold it.

    Without a lookup for each name, comparing everything takes half as long as `Named` takes for it. As there, the
    versions come first.
    """

    def __init__(self, places: Iterable[Place]) -> None:
        self.all = tuple(places)
        self.reads = tuple(vars(place.owner).values for place in self.all)
        self.values: tuple[Any, ...] = (_ABSENT,)
        self.versions = Versions(place.owner for place in self.all)
        self.unchanged_at: object = None

    def changed(
        self,
        *,
        look: Callable[[Place], list[Change]] = Place.changed,
        all: Any = all,  # noqa: A002 - bound as in `Named.changed`
        map: Any = map,  # noqa: A002
        is_: Any = is_,
        joined: Any = chain.from_iterable,
        end: Any = (_ABSENT,),
    ) -> list[tuple[Place, Change]]:
        """What changed, and where."""
        versions = self.versions.read()
        if versions == self.unchanged_at:
            return []
        # `map` stops with the shorter side; with a mark at the end of both, another length is another value.
        if all(map(is_, joined([*[read() for read in self.reads], end]), self.values)):
            self.unchanged_at = versions
            return []
        changes = [(place, change) for place in self.all for change in look(place)]
        # Names that appeared and that no code of the gate reads, such as a module imported just now, may stay.
        self.values = end if changes else (*joined([read() for read in self.reads]), *end)
        return changes


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
    functions = tuple(_own_functions())
    _CURRENT = watch = Watch(
        own=Whole(_own_places()),
        functions=functions,
        made_of=tuple(tuple(map(part, functions)) for part in MADE_OF),
        foreign=Named(_foreign_places()),
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


def _own_modules() -> list[types.ModuleType]:
    return [module for name, module in sys.modules.items() if name == OWN or name.startswith(f"{OWN}.")]


def _own_classes() -> list[type]:
    held = {id(v): v for module in _own_modules() for v in vars(module).values() if isinstance(v, type)}
    return [cls for cls in held.values() if cls.__module__.startswith(OWN)]


def _own_places() -> Iterator[Place]:
    """Modules with all they hold, and without a builtin of their own that the gate's code names; classes."""
    builtins = vars(sys.modules["builtins"])
    for module in _own_modules():
        own = [value for value in vars(module).values() if getattr(value, "__module__", "") == module.__name__]
        absent = [name for name in _names_in(_functions_in([vars(module), *map(_space, own)])) if name in builtins]
        held = dict(vars(module))
        # Every watch sets it; `_leave` compares it by itself.
        held.pop("_CURRENT", None)
        yield _place(module.__name__, module, {**dict.fromkeys(absent, _ABSENT), **held})
    for cls in _own_classes():
        held = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__", "__doc__")}
        yield _place(f"{cls.__module__}.{cls.__qualname__}", cls, held)


def _own_functions() -> list[types.FunctionType]:
    return _functions_in([vars(holder) for holder in (*_own_modules(), *_own_classes())])


def _space(value: Any) -> Any:
    return vars(value) if isinstance(value, type) else {}


def _functions_in(spaces: Iterable[Any]) -> list[types.FunctionType]:
    held = [_unwrapped(value) for space in spaces for value in space.values()]
    functions = {id(value): value for value in held if isinstance(value, types.FunctionType)}
    return [function for function in functions.values() if function.__module__.startswith(OWN)]


def _unwrapped(value: Any) -> Any:
    """The function below a method, a property or a cache."""
    for name in ("__func__", "fget", "__wrapped__"):
        value = vars(value).get(name, value) if name == "__wrapped__" and hasattr(value, "__dict__") else value
        value = getattr(value, name, value) if isinstance(value, (staticmethod, classmethod, property)) else value
    return value


def _foreign_places() -> Iterator[Place]:
    used = _names_used()
    for name in FOREIGN:
        module = sys.modules.get(name)
        if module is not None:
            # These are what numpy's public functions call in turn, so the gate's code does not name them.
            has_all = name.startswith("numpy.")
            held = {n: v for n, v in vars(module).items() if callable(v) and (has_all or n in used)}
            yield _place(name, module, held)
    for name, attribute in FOREIGN_CLASSES:
        cls = getattr(sys.modules.get(name), attribute, None)
        if cls is not None:
            names = {n for n in used if hasattr(cls, n) and not n.startswith("__")}
            yield _place(f"{name}.{attribute}", cls, {n: vars(cls).get(n, _ABSENT) for n in names})


def _place(name: str, owner: Any, held: MutableMapping[str, Any]) -> Place:
    there = {name: value for name, value in held.items() if name in vars(owner)}
    names = tuple(there)
    return Place(
        name=name,
        owner=owner,
        names=names,
        values=tuple(there.values()),
        absent=tuple(name for name in held if name not in there),
    )


@functools.cache
def _names_used() -> frozenset[str]:
    """Every global and attribute that the gate's code names."""
    return _names_in(_own_functions())


def _names_in(functions: Iterable[types.FunctionType]) -> frozenset[str]:
    waiting = [function.__code__ for function in functions]
    names: set[str] = set()
    while waiting:
        code = waiting.pop()
        names.update(code.co_names)
        waiting += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return frozenset(names)
