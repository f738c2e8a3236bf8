"""Note what this process reads, lists, imports and asks for, as Python reports it (PEP 578).

Python reports each file that it opens. What native code opens by itself is not seen; `dependencies.py` finds much of
it in other ways. A hook cannot be removed, and what it raises would end the project's call: it raises nothing.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from export_gate.worker.process.places import STDLIB, is_foreign

ALL = "*"
"""Stands for every variable."""
_IMPORTING = ("<frozen importlib", *(f"{folder}importlib{os.sep}" for folder in STDLIB))
_WRITES = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_NETWORK = (
    "socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.sendto",
    "socket.sendmsg", "socket.bind", "urllib.Request",
)  # fmt: skip
_LEADING = re.compile(r"/proc/(self|thread-self|\d+)/(cwd|root|fd/\d+)(?=/|$)|/dev/fd/\d+$")
"""Links of the system that lead to any place."""
_ENVIRON = re.compile(r"/proc/(self|thread-self|\d+)/environ")
_READLINK = os.readlink
"""As it is before `looking.py` puts its own in place of it."""
_PROGRAMS = ("subprocess.Popen", "os.posix_spawn", "os.spawn", "os.exec", "os.system", "os.startfile", "pty.spawn")


@dataclass(slots=True)
class Seen:
    """What was noted so far; forked copies of the process write theirs into a file that this one reads."""

    opened: set[str] = field(default_factory=set)
    looked: set[str] = field(default_factory=set)
    """Files that were only looked for, or that native code was given."""
    missing: set[str] = field(default_factory=set)
    """Those of both that did not exist then."""
    written: set[str] = field(default_factory=set)
    listed: set[str] = field(default_factory=set)
    imported: set[str] = field(default_factory=set)
    """Modules that were imported, whether they were found or not."""
    asked: set[str] = field(default_factory=set)
    """Environment variables."""
    unknown: set[str] = field(default_factory=set)
    """What else the verdict may depend on, in words."""
    sink: int = -1
    is_copy: bool = False

    def note(self, kind: str, value: str) -> None:
        """Add to the set of that name."""
        known: set[str] = getattr(self, kind)
        if value in known:
            return
        known.add(value)
        if self.is_copy and self.sink >= 0:
            os.write(self.sink, f"{json.dumps([kind, value])}\n".encode())

    def look(self, kind: str, name: str) -> None:
        """Note a file, and whether it exists."""
        if name not in getattr(self, kind):
            self.note(kind, name)
            if not os.path.lexists(name):
                self.note("missing", name)

    def take_in(self) -> None:
        """Add what copies of the process noted."""
        size = os.fstat(self.sink).st_size if self.sink >= 0 else 0
        for line in os.pread(self.sink, size, 0).splitlines() if size else ():
            kind, value = json.loads(line)
            getattr(self, kind).add(value)


def recorded() -> Seen:
    """Watch this process from now on; returns what is noted."""
    seen = Seen()
    if hasattr(os, "register_at_fork"):
        seen.sink = _nameless_file()  # copies share it with its position, so what they write stays apart
        os.register_at_fork(after_in_child=lambda: setattr(seen, "is_copy", True))
    handlers = _handlers(seen)

    # Bound here, because the project's code may replace what anybody finds by name.
    def watch(event: str, arguments: tuple[Any, ...], *, handlers: Any = handlers, errors: Any = Exception) -> None:
        handler = handlers.get(event)
        if handler is not None:
            try:
                handler(*arguments)
            except errors:  # an event with other arguments than Python documents
                seen.unknown.add(f"it does something that Python reports in another way ({event})")

    sys.addaudithook(watch)
    return seen


@dataclass(frozen=True, slots=True)
class _Notes:
    """What to do about each event: a method is given its arguments, and is called by the hook."""

    seen: Seen

    def opened(self, path: Any, _mode: Any, flags: Any) -> None:
        name, asked = absolute(path), flags or 0
        if _ENVIRON.fullmatch(name):
            self.seen.note("asked", ALL)
        if asked & _WRITES:
            self._wrote(name)
        if name and not asked & (os.O_WRONLY | os.O_TRUNC):
            self.seen.look("opened", name)

    def listed(self, path: Any = None, *_: Any) -> None:
        # Python itself lists the folders in which it looks for modules and for what is installed.
        is_import = sys._getframe(2).f_code.co_filename.startswith(_IMPORTING)  # noqa: SLF001
        name = "" if is_import else absolute(".", path) if isinstance(path, int) else absolute(path or ".")
        if name:
            self.seen.note("listed", name)

    def imported(self, name: str, *_: Any) -> None:
        self.seen.note("imported", name)

    def loaded(self, name: Any, *_: Any) -> None:
        path = absolute(name) if name and os.sep in str(name) else ""
        if path:
            self.seen.look("looked", path)

    def renamed(self, _source: Any, target: Any, *_: Any) -> None:
        self._wrote(absolute(target))

    def _wrote(self, name: str) -> None:
        if name and not name.endswith(".pyc"):  # Python's own, which stand for sources that were there
            self.seen.note("written", name)

    def started(self, program: Any, *_: Any) -> None:
        where = project_line(sys._getframe(2))  # noqa: SLF001
        if where:
            self.seen.note("unknown", f"it starts another program ({where})")
        else:
            self.loaded(shutil.which(os.fsdecode(program)) or program)

    def connected(self, *_: Any) -> None:
        self.seen.note("unknown", "it uses the network")


def _nameless_file() -> int:
    """A new file for this process and its forks."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("export-gate")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _handlers(seen: Seen) -> dict[str, Callable[..., None]]:
    notes = _Notes(seen)
    return {
        "open": notes.opened,
        "os.listdir": notes.listed,
        "os.scandir": notes.listed,
        "import": notes.imported,
        "ctypes.dlopen": notes.loaded,
        "sqlite3.connect": lambda name: notes.loaded(_of_uri(name)),
        "os.rename": notes.renamed,
        **dict.fromkeys(_PROGRAMS, notes.started),
        **dict.fromkeys(_NETWORK, notes.connected),
    }


def absolute(path: Any, folder: int | None = None) -> str:
    """The path as it is now, whatever folder the process works in later; empty for what is no path.

    Args:
        path: what a function of `os` takes.
        folder: an open folder in which a relative path starts, in place of the one in which the process works.
    """
    if not isinstance(path, (str, bytes, os.PathLike)):
        return ""
    name = os.fsdecode(path)
    try:
        if folder is None and (match := _LEADING.match(name)):
            start, name = _READLINK(match.group(0)), name[match.end() :].lstrip(os.sep)
            return os.path.normpath(os.path.join(start, name))  # noqa: PTH118
        if not name or name.startswith(os.sep):
            return os.path.normpath(name) if name else ""
        start = os.getcwd() if folder is None else _READLINK(f"/proc/self/fd/{folder}")  # noqa: PTH109
        return os.path.normpath(os.path.join(start, name))  # noqa: PTH118 - called very often
    except OSError:  # the folder is gone, or the system does not tell
        return ""


def _of_uri(name: Any) -> Any:
    """The path of `file:weights.db?mode=ro`, which SQLite may be given as well."""
    is_uri = isinstance(name, str) and name.startswith("file:")
    return unquote(re.sub(r"^file:(//[^/]*(?=/))?|[?#].*", "", name)) if is_uri else name


def project_line(frame: Any) -> str:
    """`path:line` of the innermost call that is the project's own; empty if there is none."""
    while frame is not None:
        file = frame.f_code.co_filename
        if not is_foreign(file):
            return f"{file}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
