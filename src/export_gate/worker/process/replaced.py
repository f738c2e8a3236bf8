"""Find what was replaced in modules and classes, by what they held before.

Builtins that these functions need are bound as defaults: those that anybody finds by name may be the project's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from operator import contains, is_, itemgetter
from typing import Any

from export_gate.worker.process.versions import Versions

ABSENT = object()
"""In place of a value: nothing has this name."""
Change = tuple[str, Any, Any]
"""Name, what it named, what it names now."""


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
        now = [(name, old, space.get(name, ABSENT)) for name, old in zip(self.names, self.values, strict=True)]
        appeared = [(name, ABSENT, space[name]) for name in self.absent if name in space]
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
        if value is ABSENT:
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
        self.values: tuple[Any, ...] = (ABSENT,)
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
        end: Any = (ABSENT,),
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
