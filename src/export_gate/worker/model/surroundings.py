"""Give a copy of the process other surroundings: a later clock, another environment, locale and working directory.

Each change is for a forked copy, which ends with it. Native code sees the environment, the locale and the folder, but
not the clock.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import locale
import os
import sys
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from export_gate.wall.observation import Surrounding
from export_gate.worker.process.files_read import is_installed

LATER = dt.timedelta(days=400, hours=5, minutes=43, seconds=17)
"""Another year, month, weekday, hour and minute."""
# Auckland, because half of the day it has another date than UTC.
OTHERS = {"USER": "somebody-else", "LOGNAME": "somebody-else", "TERM": "dumb", "HOME": os.sep, "TZ": "Pacific/Auckland"}
# The most different first, since one that is installed is enough: decimal comma, then Turkish case rules.
LOCALES = ("de_DE.UTF-8", "fr_FR.UTF-8", "tr_TR.UTF-8", "en_US.UTF-8", "C")
UNSET = "1"
"""What the project's code gets for a variable that is not set: the most usual value of a switch."""
OFF = "0"
"""What it gets where it takes that value for granted."""


def _later_clock(_names: Collection[str]) -> None:
    later = LATER.total_seconds()
    now, now_ns, local, utc, text = time.time, time.time_ns, time.localtime, time.gmtime, time.strftime

    class Datetime(dt.datetime):
        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> Any:
            return super().now(tz) + LATER

        @classmethod
        def utcnow(cls) -> Any:
            # `utcnow` warns since Python 3.12, and the project may turn warnings into errors.
            return super().now(dt.timezone.utc).replace(tzinfo=None) + LATER

        @classmethod
        def today(cls) -> Any:
            return super().now() + LATER

    class Date(dt.date):
        @classmethod
        def today(cls) -> Any:
            return super().today() + LATER

    shifted: dict[int, Any] = {
        id(now): lambda: now() + later,
        id(now_ns): lambda: now_ns() + int(later * 1e9),
        id(local): lambda seconds=None: local(now() + later if seconds is None else seconds),
        id(utc): lambda seconds=None: utc(now() + later if seconds is None else seconds),
        id(text): lambda form, at=None: text(form, local(now() + later) if at is None else at),
        id(dt.datetime): Datetime,
        id(dt.date): Date,
    }
    # By identity, and in every module of the project: `from time import time as now` has made names of its own.
    for module in (time, dt, *_project_modules()):
        for name, value in list(vars(module).items()):
            if id(value) in shifted:
                setattr(module, name, shifted[id(value)])


def _project_modules() -> Iterator[ModuleType]:
    """Modules that are not installed, which may hold functions of the clock by names of their own."""
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and _is_of_project(module.__name__, file):
            yield module


def _is_of_project(module: str, file: str) -> bool:
    return not is_installed(file) and module.partition(".")[0] != "export_gate"


def _other_environment(names: Collection[str]) -> None:
    """Remove the contract's variables and rename user and home; a variable that is not set is a switch that is on."""
    os.environ.update(OTHERS)
    if hasattr(time, "tzset"):
        # The C library reads TZ once, and keeps it.
        time.tzset()
    for name in names:
        os.environ.pop(name, None)
    if os.environ.pop("CI", None) is None:
        os.environ["CI"] = UNSET

    class Switched(type(os.environ)):  # type: ignore[misc] # os._Environ, which is not public
        def __getitem__(self, name: Any) -> Any:
            try:
                return super().__getitem__(name)
            except KeyError:
                if name not in names and _is_asked_by_project(sys._getframe(1)):  # noqa: SLF001
                    return UNSET
                raise

        def get(self, name: Any, default: Any = None) -> Any:
            # Not by way of `__getitem__`, which would see this function ask.
            try:
                return super().__getitem__(name)
            except KeyError:
                if name not in names and _is_asked_by_project(sys._getframe(1)):  # noqa: SLF001
                    return OFF if str(default) == UNSET else UNSET
                return default

    # By class, since modules hold the object itself.
    os.environ.__class__ = Switched


def _is_asked_by_project(frame: Any) -> bool:
    while frame is not None and frame.f_globals.get("__name__") in ("os", "_collections_abc", "collections.abc"):
        frame = frame.f_back
    return frame is not None and _is_of_project(str(frame.f_globals.get("__name__")), frame.f_code.co_filename)


def _other_locale(_names: Collection[str]) -> None:
    before = locale.setlocale(locale.LC_ALL)
    for name in LOCALES:
        with contextlib.suppress(locale.Error):
            if locale.setlocale(locale.LC_ALL, name) != before:
                return


def _other_folder(_names: Collection[str]) -> None:
    os.chdir(Path(os.sep))


CHANGES: dict[Surrounding, Callable[[Collection[str]], None]] = {
    "clock": _later_clock,
    "environment": _other_environment,
    "locale": _other_locale,
    "working directory": _other_folder,
}
"""What is changed -> how, given the names of the contract's own variables."""
