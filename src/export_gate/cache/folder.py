"""The folder in which verdicts are kept: entries by model, and objects by the sha256 of their bytes.

Whatever else is in it is somebody's mistake or malice: links are not followed, files of other users are not read, and
what does not have the digest that it should have is ignored. Every file appears at once and whole, so that several runs
can share the folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from export_gate.cache.entry import LARGEST_BYTES, Entry, entry_text, parse_entry

MOST_UNUSED_DAYS = 30
MOST_OF_A_MODEL = 8
"""Entries of one model, as of several branches between which somebody changes."""
GRACE_S = 3600.0
"""What is younger may be of a run that has not written its entry yet."""
_NAME = re.compile(r"[0-9a-f]{64}")
CHUNK_BYTES = 1 << 20


@dataclass(slots=True)
class CacheFolder:
    """The folder; a failure to write is remembered and not raised."""

    path: Path
    keeps: bool = True
    """Whether new verdicts are written; kept ones are used in any case."""
    limit_bytes: int = 2_000_000_000
    problem: str = field(default="")
    """The first reason why something could not be written."""

    @property
    def is_usable(self) -> bool:
        """Whether its parts are folders of this user's; a link would lead out of it."""
        return all(_is_own_folder(part) for part in (self.path / "entries", self.path / "objects") if _exists(part))

    def entries(self, key: str) -> Iterator[tuple[Path, Entry]]:
        """The whole entries of the model with that key, the last used first."""
        folder = self.path / "entries" / key
        if not (self.is_usable and _is_own_folder(folder)):
            return
        for path in sorted(folder.glob("*.json"), key=_used_ns, reverse=True)[:MOST_OF_A_MODEL]:
            text = read_own(path, LARGEST_BYTES)
            entry = None if text is None else parse_entry(text)
            if entry is not None:
                yield path, entry

    def used(self, path: Path) -> None:
        """Note that an entry was used, so that it is the last one to be removed."""
        if self.keeps:
            with contextlib.suppress(OSError):
                os.utime(path, follow_symlinks=False)

    def add(self, key: str, entry: Entry) -> None:
        """Keep an entry, whose objects are there already."""
        text = entry_text(entry)
        name = hashlib.sha256(repr((entry.contract, entry.circumstances, entry.files)).encode()).hexdigest()[:32]
        self._write(self.path / "entries" / key / f"{name}.json", text)

    def add_bytes(self, content: bytes) -> str:
        """Keep an object; returns its name."""
        name = hashlib.sha256(content).hexdigest()
        self._write(self._object(name), content)
        return name

    def add_file(self, source: Path, name: str) -> bool:
        """Keep a file's bytes as the object of that name; False if it does not have that digest, or on a failure."""
        place = self._object(name)
        try:
            with self._partial(place) as partial:
                if copy_digest(source, partial) != name:
                    return False
                partial.replace(place)
        except OSError as error:
            self._fail(error)
            return False
        return True

    def object_bytes(self, name: str) -> bytes | None:
        """The bytes of an object, or None if it is not there as it should be."""
        text = read_own(self._object(name), LARGEST_BYTES * 16) if _NAME.fullmatch(name) else None
        return text if text is not None and hashlib.sha256(text).hexdigest() == name else None

    def restore(self, name: str, target: Path) -> bool:
        """Copy an object to a new file; False if it is not there as it should be, and nothing is written."""
        source = self._object(name)
        if not (_NAME.fullmatch(name) and self.is_usable and _is_own_file(source)):
            return False
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            is_whole = copy_digest(source, target) == name
        except OSError:
            is_whole = False
        if not is_whole:
            target.unlink(missing_ok=True)
        return is_whole

    def _object(self, name: str) -> Path:
        return self.path / "objects" / name[:2] / name

    def _write(self, place: Path, content: bytes) -> None:
        try:
            with self._partial(place) as partial:
                partial.write_bytes(content)
                partial.replace(place)
        except OSError as error:
            self._fail(error)

    @contextlib.contextmanager
    def _partial(self, place: Path) -> Iterator[Path]:
        """A new file next to its place, which is removed unless it was moved there."""
        if not self.is_usable:
            raise OSError(0, "entries or objects is not a folder of this user's")
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        place.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".partial-", dir=place.parent)
        os.close(handle)
        try:
            yield Path(name)
        finally:
            Path(name).unlink(missing_ok=True)

    def _fail(self, error: OSError) -> None:
        self.problem = self.problem or f"{self.path}: {error.strerror or error}"


def prune(folder: CacheFolder, now_s: float | None = None) -> None:
    """Remove what was not used for long, then what was used longest ago until the rest is within the limit."""
    if not (folder.keeps and folder.is_usable):
        return
    now = time.time() if now_s is None else now_s
    with contextlib.suppress(OSError):
        kept = _prune_entries(folder, now)
        for path in (*_inside(folder.path / "objects", "*"), *_inside(folder.path / "entries", ".partial-*")):
            if path.name not in kept and now - path.lstat().st_mtime > GRACE_S:
                path.unlink(missing_ok=True)


def _prune_entries(folder: CacheFolder, now: float) -> set[str]:
    """The names of the objects that the remaining entries need."""
    kept: set[str] = set()
    size = 0
    for path in sorted(_inside(folder.path / "entries", "*.json"), key=_used_ns, reverse=True):
        text = read_own(path, LARGEST_BYTES)
        entry = None if text is None else parse_entry(text)
        new = set(entry.objects) - kept if entry else set()
        size += path.lstat().st_size + sum(_size(folder.path / "objects" / name[:2] / name) for name in new)
        is_old = now - _used_ns(path) / 1e9 > MOST_UNUSED_DAYS * 86400
        if entry is None or is_old or size > folder.limit_bytes:
            path.unlink(missing_ok=True)
        else:
            kept |= new
    return kept


def _inside(folder: Path, pattern: str) -> list[Path]:
    """The files two levels down; what is behind a link is not ours."""
    return [path for inner in folder.iterdir() if _is_own_folder(inner) for path in inner.glob(pattern)]


def read_own(path: Path, most: int) -> bytes | None:
    """The bytes of a file of this user's; None for a link, another user's, a larger one or none at all."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return None
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_size > most or not _is_own(found):
            return None
        with os.fdopen(handle, "rb", closefd=False) as file:
            return file.read(most)
    finally:
        os.close(handle)


def copy_digest(source: Path, target: Path) -> str:
    """Copy a file's bytes; their sha256."""
    digest = hashlib.sha256()
    with source.open("rb") as reading, target.open("wb") as writing:
        while chunk := reading.read(CHUNK_BYTES):
            digest.update(chunk)
            writing.write(chunk)
    return digest.hexdigest()


def _exists(path: Path) -> bool:
    return os.path.lexists(path)


def _is_own(found: os.stat_result) -> bool:
    return not hasattr(os, "getuid") or found.st_uid == os.getuid()


def _is_own_folder(path: Path) -> bool:
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and _is_own(found)


def _is_own_file(path: Path) -> bool:
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and _is_own(found) and _is_own_folder(path.parent)


def _used_ns(path: Path) -> int:
    try:
        return path.lstat().st_mtime_ns
    except OSError:
        return 0


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0
