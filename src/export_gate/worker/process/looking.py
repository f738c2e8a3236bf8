"""Note what Python does not report: looking for files and modules, reading the clock, the system's randomness."""

from __future__ import annotations

import importlib.util
import os
import random
import secrets
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from export_gate.worker.process.places import is_foreign
from export_gate.worker.process.recording import Seen, absolute

_LOOKS = ("stat", "lstat", "readlink", "access", "open")
_ALWAYS = ("time", "time_ns", "clock_gettime", "clock_gettime_ns")
_WITHOUT_ARGUMENT = {"localtime": 0, "gmtime": 0, "ctime": 0, "strftime": 1}
"""Functions of `time` that read the clock unless they get more arguments than that, besides None."""
_ENTROPY: tuple[tuple[Any, str], ...] = ((os, "urandom"), (os, "getrandom"), (random, "_urandom"))
"""What `uuid`, `secrets`, `random.SystemRandom` and NumPy's generators without a seed draw from."""
_SEEDING: tuple[tuple[Any, str], ...] = ((random, "seed"), (random.Random, "seed"))
"""With `torch.seed`, they take the system's randomness unless they get a seed."""
_BETWEEN = frozenset({random.__file__, secrets.__file__, uuid.__file__})
"""Modules that draw for whoever calls them."""


@contextmanager
def looks_noted(seen: Seen) -> Iterator[None]:
    """Put functions that note their use in place of those of `os`, `time`, `random` and `torch`."""
    wrapped = [(os, name, _looking) for name in _LOOKS]
    wrapped.append((importlib.util, "find_spec", _searching))
    wrapped += [(time, name, _reading_clock) for name in (*_ALWAYS, *_WITHOUT_ARGUMENT)]
    wrapped += [(owner, name, _drawing) for owner, name in _ENTROPY if hasattr(owner, name)]
    torch = [(sys.modules["torch"], "seed")] if "torch" in sys.modules else []
    wrapped += [(owner, name, _seeding) for owner, name in (*_SEEDING, *torch)]
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in wrapped]
    for owner, name, wrap in wrapped:
        setattr(owner, name, wrap(getattr(owner, name), seen))
    _admit(*(getattr(os, name) for name in _LOOKS))
    try:
        yield
    finally:
        for module, name, function in before:
            setattr(module, name, function)


def _looking(function: Callable[..., Any], seen: Seen) -> Callable[..., Any]:
    def look(path: Any, *args: Any, **kwargs: Any) -> Any:
        folder = kwargs.get("dir_fd")
        name = absolute(path, folder)
        if folder is not None and not name:
            seen.note("unknown", "it looks for files in a folder that is open")
        # Python itself reports what is opened, but not in which folder. `os.path.realpath` looks for a link at each
        # folder on the way to a file.
        is_known = function.__name__ == "open" and folder is None
        if name and not is_known and not (function.__name__ == "lstat" and os.path.isdir(name)):  # noqa: PTH112
            seen.look("looked", name)
        return function(path, *args, **kwargs)

    look.__name__ = function.__name__
    return look


def _searching(function: Callable[..., Any], seen: Seen) -> Callable[..., Any]:
    def find_spec(name: Any, package: Any = None) -> Any:
        # Python reports what is imported alone, and code may look whether there is a module.
        if isinstance(name, str) and name.strip("."):
            seen.note("imported", importlib.util.resolve_name(name, package))
        return function(name, package)

    return find_spec


def _admit(*functions: Any) -> None:
    """Let them pass where code asks what a function of `os` can do, as `shutil` does."""
    for name in ("supports_dir_fd", "supports_effective_ids", "supports_fd", "supports_follow_symlinks"):
        known = getattr(os, name)
        known.update(new for new in functions if any(old.__name__ == new.__name__ for old in known))


def _reading_clock(function: Callable[..., Any], seen: Seen) -> Callable[..., Any]:
    most = _WITHOUT_ARGUMENT.get(function.__name__)

    def read(*args: Any) -> Any:
        if most is None or sum(argument is not None for argument in args) <= most:
            _note_caller("it reads the clock", seen)
        return function(*args)

    read.__name__ = function.__name__
    return read


def _drawing(function: Callable[..., Any], seen: Seen) -> Callable[..., Any]:
    def draw(*args: Any, **kwargs: Any) -> Any:
        _note_caller("it draws from the system's randomness", seen)
        return function(*args, **kwargs)

    return draw


def _seeding(function: Callable[..., Any], seen: Seen) -> Callable[..., Any]:
    def seed(*args: Any, **kwargs: Any) -> Any:
        given = [each for each in (*args, *kwargs.values()) if not isinstance(each, random.Random)]
        if not given or given[0] is None:
            _note_caller("it draws from the system's randomness", seen)
        return function(*args, **kwargs)

    return seed


def _note_caller(what: str, seen: Seen) -> None:
    """Note it with its line, if the project's own code does it."""
    caller: FrameType | None = sys._getframe(2)  # noqa: SLF001
    while caller is not None and caller.f_code.co_filename in _BETWEEN:
        caller = caller.f_back
    if caller is not None and not is_foreign(caller.f_code.co_filename):
        seen.note("unknown", f"{what} ({caller.f_code.co_filename}:{caller.f_lineno})")
