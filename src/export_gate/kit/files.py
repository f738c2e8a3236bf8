"""List the files in a kit's folder, with size and sha256; links are not followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from export_gate.wall.conformance import KitFile
from export_gate.wall.digest import digest_file
from export_gate.wall.errors import UserError


def list_files(folder: Path) -> list[str]:
    """List the paths of all files in the folder, relative to it, in order.

    Raises:
        UserError: it cannot be read, or contains something other than files and folders, such as a link.
    """
    try:
        return sorted(_walk(folder, ""))
    except OSError as error:
        raise UserError(f"{error.filename or folder}: cannot be read: {error.strerror or error}") from error


def describe_file(path: Path) -> KitFile:
    """Size and sha256 of one file."""
    return KitFile(sha256=digest_file(path), size_bytes=path.stat().st_size)


def shown(name: str) -> str:
    """An untrusted path, quoted, without control characters, and short enough for a line."""
    text = ascii(name)
    return text if len(text) <= 120 else f"{text[:116]}...{text[0]}"  # noqa: PLR2004 - fits a terminal


def _walk(folder: Path, prefix: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            # A kit may come from a stranger: a link in it could make us read, or with --force remove, other files.
            mode = entry.stat(follow_symlinks=False).st_mode
            name = f"{prefix}{entry.name}"
            if stat.S_ISDIR(mode):
                yield from _walk(folder / entry.name, f"{name}/")
            elif stat.S_ISREG(mode):
                yield name
            else:
                kind = "a symbolic link" if stat.S_ISLNK(mode) else "not a regular file"
                place = folder / entry.name if entry.name.isprintable() else f"{folder}: {shown(entry.name)}"
                raise UserError(f"{place}: {kind}; a kit may contain only files")
