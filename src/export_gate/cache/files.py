"""Read and copy files of the cache: no link is followed, and files of other users are not read."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

CHUNK_BYTES = 1 << 20


def sealed(body: bytes) -> bytes:
    """A text with a digest of it in front."""
    return hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def unsealed(text: bytes) -> bytes | None:
    """The text behind its digest; None if it is truncated or was edited."""
    digest, _, body = text.partition(b"\n")
    return body if hashlib.sha256(body).hexdigest().encode() == digest else None


def read_own(path: Path, most: int) -> bytes | None:
    """The bytes of a file of this user's; None for a link, another user's, a larger one or none at all."""
    try:
        # Neither follow a link nor wait for a pipe that nobody writes to. Windows has neither flag.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return None
    try:
        # Of the open file: what is at the path may have been replaced since.
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


def _is_own(found: os.stat_result) -> bool:
    return not hasattr(os, "getuid") or found.st_uid == os.getuid()


def is_own_folder(path: Path) -> bool:
    """Whether it is a folder of this user's, and no link."""
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and _is_own(found)


def is_own_file(path: Path) -> bool:
    """Whether it is a file of this user's in such a folder."""
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and _is_own(found) and is_own_folder(path.parent)


def used_ns(path: Path) -> int:
    """When the file was last written or used; 0 if it is gone."""
    try:
        return path.lstat().st_mtime_ns
    except OSError:
        return 0
