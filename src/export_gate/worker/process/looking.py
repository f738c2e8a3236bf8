"""Note what Python does not report: files that are looked for with `os.stat`, and readings of the clock."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from export_gate.worker.process.places import is_foreign
from export_gate.worker.process.recording import Seen, absolute

_LOOKS = ("stat", "lstat", "readlink", "access", "open")
_ALWAYS = ("time", "time_ns", "clock_gettime", "clock_gettime_ns")
_WITHOUT_ARGUMENT = {"localtime": 0, "gmtime": 0, "ctime": 0, "strftime": 1}
"""Functions of `time` that read the clock unless they get more arguments than that, besides None."""


@contextmanager
def looks_noted(seen: Seen) -> Iterator[None]:
    """Put functions that note their use in place of those of `os` and `time`."""
    before = [(os, name, getattr(os, name)) for name in _LOOKS]
    before += [(time, name, getattr(time, name)) for name in (*_ALWAYS, *_WITHOUT_ARGUMENT)]
    for module, name, function in before:
        wrap = _looking if module is os else _reading_clock
        setattr(module, name, wrap(function, seen))
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


def _admit(*functions: Any) -> None:
    """Let them pass where code asks what a function of `os` can do, as `shutil` does."""
    for name in ("supports_dir_fd", "supports_effective_ids", "supports_fd", "supports_follow_symlinks"):
        known = getattr(os, name)
        known.update(new for new in functions if any(old.__name__ == new.__name__ for old in known))


def _reading_clock(function: Callable[..., Any], seen: Seen) -> Callable[..., Any]:
    most = _WITHOUT_ARGUMENT.get(function.__name__)

    def read(*args: Any) -> Any:
        if most is None or sum(argument is not None for argument in args) <= most:
            caller = sys._getframe(1)  # noqa: SLF001
            if not is_foreign(caller.f_code.co_filename):
                seen.note("unknown", f"it reads the clock ({caller.f_code.co_filename}:{caller.f_lineno})")
        return function(*args)

    read.__name__ = function.__name__
    return read
