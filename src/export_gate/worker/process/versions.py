"""Notice in one comparison of numbers that none of many dicts was changed."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Iterable
from typing import Any

_TAG_OFFSET = object.__basicsize__ + 8
"""In a PyDictObject, behind what every object has and the number of entries."""
_PLAIN_OBJECT_BYTES = 16
"""Of a 64-bit build with the GIL; others begin their objects otherwise."""


class Versions:
    """Reads a number per dict of modules and classes, another one after each change of it.

    CPython up to 3.13 numbers all changes of dicts for its own caches (PEP 509). Reading the numbers touches 8 bytes
    per dict; comparing what the dicts hold touches every object in them. With the hundreds of modules and classes that
    are watched, and after every call of a model, that was a seventh of a small model's run.
    """

    def __init__(self, owners: Iterable[Any]) -> None:
        # Kept, so that no dict's memory is used by something else.
        self.spaces = tuple(map(_dict_of, owners))
        self.views = tuple(map(_tag, self.spaces)) if _has_versions() else None

    def read(self) -> object:
        """Return the numbers; where the interpreter has none, something that equals no other reading."""
        return object() if self.views is None else [view[0] for view in self.views]


def _dict_of(owner: Any) -> dict[str, Any]:
    space: Any = vars(owner)
    # A class shows its dict through a proxy, whose only referent it is.
    held: dict[str, Any] = space if isinstance(space, dict) else gc.get_referents(space)[0]
    return held


def _tag(space: dict[str, Any]) -> memoryview:
    # Nobody can replace how a memoryview reads; the classes of ctypes can be changed.
    return memoryview(ctypes.c_uint64.from_address(id(space) + _TAG_OFFSET)).cast("B").cast("Q")


def _has_versions() -> bool:
    if sys.implementation.name != "cpython" or sys.version_info >= (3, 14):
        return False
    if object.__basicsize__ != _PLAIN_OBJECT_BYTES:
        return False
    # The numbers are nobody's promise, so see them change before anything relies on them.
    space: dict[str, int] = {"a": 0}
    view = _tag(space)
    seen = [view[0]]
    space["a"] = 1
    seen.append(view[0])
    space["b"] = 1
    seen.append(view[0])
    del space["a"]
    seen.append(view[0])
    return len(set(seen)) == len(seen)
