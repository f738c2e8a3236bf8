"""The folder in which verdicts are kept: entries by model, and objects by the sha256 of their bytes.

Whatever else is in it is somebody's mistake or malice: links are not followed, files of other users are not read, and
what does not have the digest that it should have is ignored. Every file appears at once and whole, so that several runs
can share the folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from export_gate.cache.entry import LARGEST_BYTES, Entry, entry_text, parse_entry
from export_gate.cache.files import copy_digest, is_own_file, is_own_folder, read_own, used_ns

MOST_OF_A_MODEL = 8
"""Entries of one model, as of several branches between which somebody changes."""
_NAME = re.compile(r"[0-9a-f]{64}")
PARTS = ("entries", "objects", "standing")
DURATION = "seconds"


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
        """Whether its parts, if they exist, are this user's own folders; a link would lead out of it."""
        return all(is_own_folder(self.path / part) for part in PARTS if os.path.lexists(self.path / part))

    def entries(self, key: str) -> Iterator[tuple[Path, Entry]]:
        """The whole entries of the model with that key, the last used first."""
        folder = self.path / "entries" / key
        if not (self.is_usable and is_own_folder(folder)):
            return
        for path in sorted(folder.glob("*.json"), key=used_ns, reverse=True)[:MOST_OF_A_MODEL]:
            text = read_own(path, LARGEST_BYTES)
            entry = None if text is None else parse_entry(text)
            if entry is not None:
                yield path, entry

    def used(self, path: Path) -> None:
        """Note that an entry was used, so that it is the last one to be removed."""
        if self.keeps:
            with contextlib.suppress(OSError):
                os.utime(path, follow_symlinks=False)

    def add(self, key: str, entry: Entry) -> Path:
        """Keep an entry, whose objects are there already; returns where it is."""
        text = entry_text(entry)
        # Not over the whole entry, which has the day: the same state verified again replaces its older entry.
        name = hashlib.sha256(repr((entry.contract, entry.circumstances, entry.files)).encode()).hexdigest()[:32]
        place = self.path / "entries" / key / f"{name}.json"
        self._write(place, text)
        return place

    def note_duration(self, key: str, seconds: float) -> None:
        """Keep how long the model with that key took, whatever its verdict."""
        if self.keeps:
            self._write(self.path / "entries" / key / DURATION, f"{seconds:.3f}".encode())

    def durations_s(self, keys: Mapping[str, str]) -> dict[str, float]:
        """How long models took last, as far as it is known; the keys are named as the result is."""
        if not self.is_usable:
            return {}
        found = {name: self._duration_s(key) for name, key in keys.items()}
        return {name: seconds for name, seconds in found.items() if seconds is not None}

    def _duration_s(self, key: str) -> float | None:
        text = read_own(self.path / "entries" / key / DURATION, LARGEST_BYTES)
        try:
            # NaN, which no comparison below lets through, stands for a file that cannot be read.
            seconds = float(text or b"nan")
        except ValueError:
            return None
        return seconds if 0 <= seconds < math.inf else None

    def add_standing(self, name: str, text: bytes) -> None:
        """Keep the record of a whole run."""
        if self.keeps:
            self._write(self.path / "standing" / name, text)

    def standing(self, name: str) -> bytes | None:
        """The record of a whole run, if there is one."""
        return read_own(self.path / "standing" / name, LARGEST_BYTES) if self.is_usable else None

    def add_bytes(self, content: bytes) -> str:
        """Keep an object; returns its name."""
        # Written even if it is there: as a new file it is within GRACE_S, so that no other run prunes it meanwhile.
        name = hashlib.sha256(content).hexdigest()
        self._write(self._object(name), content)
        return name

    def add_file(self, source: Path, name: str) -> bool:
        """Keep a file's bytes as the object of that name; False if it does not have that digest, or on a failure."""
        place = self._object(name)
        try:
            with self._partial(place) as partial:
                # Compared with what was copied, since the source could change between a check and the copy.
                if copy_digest(source, partial) != name:
                    return False
                partial.replace(place)
        except OSError as error:
            self._fail(error)
            return False
        return True

    def object_bytes(self, name: str) -> bytes | None:
        """The bytes of an object, or None if it is not there as it should be."""
        # The observations of a model, which may be as large as a whole results.json.
        text = read_own(self._object(name), LARGEST_BYTES * 16) if _NAME.fullmatch(name) else None
        return text if text is not None and hashlib.sha256(text).hexdigest() == name else None

    def restore(self, name: str, target: Path) -> bool:
        """Copy an object to a new file; False if it is not there as it should be, and then no file is left."""
        source = self._object(name)
        # Whoever wrote the entry chose the name: one with `..` in it would lead out of the folder.
        if not (_NAME.fullmatch(name) and self.is_usable and is_own_file(source)):
            return False
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            # Over the bytes that were written, so that nobody can replace the object between a check and the copy.
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
            raise OSError(0, "one of its parts is not a folder of this user's")
        # Only for this user, as nothing signs an entry.
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        place.parent.mkdir(parents=True, exist_ok=True)
        # In the folder of its place: a rename is atomic only within one file system.
        partial = place.with_name(f".partial-{os.getpid()}-{os.urandom(8).hex()}")
        os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        try:
            yield partial
        finally:
            partial.unlink(missing_ok=True)

    def _fail(self, error: OSError) -> None:
        self.problem = self.problem or f"{self.path}: {error.strerror or error}"
