"""The state, as it is now, of what verdicts depend on: files, folders, modules and installed packages."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from export_gate.wall.digest import digest_file

MISSING = "missing"
_PASSING = ("__pycache__", ".export-gate", ".git")
"""Entries of a folder that appear and disappear without meaning anything."""
_MODULES = (".py", ".so", ".pyd", ".pyc")
_INSTALLED = (".dist-info/", ".egg-info/", ".egg-info")
"""What Python takes for an installed package, in whatever folder of `sys.path`."""
_STARTUP = ("sitecustomize.py", "usercustomize.py")
"""Modules that Python imports whenever it starts."""
_RECORDS = ("RECORD", "METADATA", "PKG-INFO")
"""Files that tell one installation of a package from another, the most exact first."""


@dataclass(frozen=True, slots=True)
class Present:
    """Looks at each file and folder once; paths are absolute, or start at the root of the checkout."""

    root: Path
    known: dict[tuple[str, str], str] = field(default_factory=dict)
    listed: dict[str, list[str] | None] = field(default_factory=dict)
    changed_ns: dict[str, int] = field(default_factory=dict)
    """When the system last noted a change of each file that was looked at."""

    def file(self, name: str) -> str:
        """The sha256 of a file's bytes, and where it really is if that is elsewhere; or what is there instead."""
        return self._once("file", name, lambda: self._file(name))

    def folder(self, name: str) -> str:
        """A digest of the names in a folder."""
        return self._once("folder", name, lambda: _listing(self._entries(name)))

    def modules(self, name: str, wanted: Collection[str]) -> str:
        """What a folder has that Python would import under one of these names, or takes for an installed package."""
        found = self._entries(name)
        if found is None:
            return MISSING
        importable = (entry for entry in found if entry.endswith(("/", *_MODULES)))
        used = (entry for entry in importable if entry.rstrip("/").partition(".")[0] in wanted)
        return " ".join(dict.fromkeys((*used, *(entry for entry in found if entry.endswith(_INSTALLED)))))

    def site(self, name: str) -> str:
        """A digest of what is installed in a folder: distributions with their versions, and what runs at the start."""
        return self._once("site", name, lambda: self._site(name))

    def below(self, name: str) -> Iterator[str]:
        """The files below a folder, or the file itself."""
        place = self.root / name
        if not place.is_dir():
            yield name
            return
        for folder, inner, files in os.walk(place):
            inner[:] = sorted(each for each in inner if each not in _PASSING)
            yield from (self.named(os.path.join(folder, file)) for file in sorted(files))  # noqa: PTH118

    def named(self, path: str) -> str:
        """A path from the root of the checkout, or as it is if it is elsewhere."""
        if path == str(self.root):
            return "."
        start = f"{self.root}{os.sep}"
        return path.removeprefix(start).replace(os.sep, "/") if path.startswith(start) else path

    def _once(self, kind: str, name: str, look: object) -> str:
        if (kind, name) not in self.known:
            self.known[kind, name] = look()  # type: ignore[operator] # one of the lambdas above
        return self.known[kind, name]

    def _file(self, name: str) -> str:
        path = self.root / name
        try:
            link = path.lstat()
            found = path.stat() if stat.S_ISLNK(link.st_mode) else link
            if not stat.S_ISREG(found.st_mode):
                return "a folder" if stat.S_ISDIR(found.st_mode) else "no regular file"
            # Of the link too: it may have been pointed at an older file.
            self.changed_ns[name] = max(found.st_ctime_ns, link.st_ctime_ns)
            # With another target of the same bytes, relative names in the file may lead to other files.
            real = os.path.realpath(path) if link is not found else self._really(path)
            moved = "" if real == os.path.join(self._real_folder(self.root), name) else f" in {self.named(real)}"  # noqa: PTH118
            return digest_file(path) + moved
        except FileNotFoundError:
            # One that leads to nothing is there for whoever asks for a link.
            return f"a link to {path.readlink()}" if path.is_symlink() else MISSING
        except OSError as error:
            return f"unreadable: {error.strerror or error}"

    def _really(self, path: Path) -> str:
        """Where a file that is no link really is."""
        return os.path.join(self._real_folder(path.parent), path.name)  # noqa: PTH118

    def _real_folder(self, folder: Path) -> str:
        return self._once("real", str(folder), lambda: self._resolved(folder))

    def _resolved(self, folder: Path) -> str:
        # Not always by realpath, which asks the system about every part: most files share their folders.
        is_plain = folder.name not in ("", os.pardir) and folder.is_absolute() and not folder.is_symlink()
        return self._really(folder) if is_plain else os.path.realpath(folder)

    def _entries(self, name: str) -> list[str] | None:
        """Names in the folder, those of folders with `/`; None if there is none."""
        if name not in self.listed:
            self.listed[name] = self._scanned(name)
        return self.listed[name]

    def _scanned(self, name: str) -> list[str] | None:
        try:
            with os.scandir(self.root / name) as entries:
                found = [f"{entry.name}/" if entry.is_dir() else entry.name for entry in entries]
        except OSError:
            return None
        return sorted(entry for entry in found if entry.rstrip("/") not in _PASSING)

    def _site(self, name: str) -> str:
        entries = self._entries(name)
        if entries is None:
            return MISSING
        # The names alone do not tell a version that was installed again with other files.
        lines = list(entries)
        for entry in entries:
            if entry.endswith(_INSTALLED) and entry.endswith("/"):
                lines.append(self._record(f"{name}/{entry}"))
            elif entry.endswith((".pth", ".egg-link", ".egg-info")) or entry in _STARTUP:
                lines.append(self.file(f"{name}/{entry}"))
        # Of a conda environment, PREFIX/lib/python3.11/site-packages: its libraries, such as MKL, are no distributions.
        lines += self._entries(os.path.join(name, *[os.pardir] * 3, "conda-meta")) or ()  # noqa: PTH118
        return _listing(lines)

    def _record(self, folder: str) -> str:
        states = (self.file(f"{folder}{record}") for record in _RECORDS)
        return next((state for state in states if state != MISSING), MISSING)


def _listing(names: list[str] | None) -> str:
    if names is None:
        return MISSING
    return hashlib.sha256("\n".join(names).encode("utf-8", "surrogateescape")).hexdigest()
