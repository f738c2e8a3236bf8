"""Keep the cache's folder small: remove what was not used for long, and what was used longest ago beyond the limit."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from export_gate.cache.entry import LARGEST_BYTES, parse_entry
from export_gate.cache.files import is_own_folder, read_own, used_ns
from export_gate.cache.folder import CacheFolder

MOST_UNUSED_DAYS = 30
GRACE_S = 3600.0
"""What is younger may be of a run that has not written its entry yet."""


def prune(folder: CacheFolder, now_s: float | None = None) -> None:
    """Remove what was not used for long, then what was used longest ago until the rest is within the limit."""
    if not (folder.keeps and folder.is_usable):
        return
    now = time.time() if now_s is None else now_s
    with contextlib.suppress(OSError):
        kept = _prune_entries(folder, now)
        # Objects are written before the entry that needs them: without the grace, those of a parallel run would go.
        for path in (*_inside(folder.path / "objects", "*"), *_inside(folder.path / "entries", ".partial-*")):
            if path.name not in kept and now - path.lstat().st_mtime > GRACE_S:
                path.unlink(missing_ok=True)


def _prune_entries(folder: CacheFolder, now: float) -> set[str]:
    """The names of the objects that the remaining entries need."""
    kept: set[str] = set()
    size = 0
    for path in sorted(_inside(folder.path / "entries", "*.json"), key=used_ns, reverse=True):
        text = read_own(path, LARGEST_BYTES)
        entry = None if text is None else parse_entry(text)
        # The size of what is removed counts on: else a smaller entry would stay that was used before a larger one.
        # Entries may share an object, which takes its room once.
        new = set(entry.objects) - kept if entry else set()
        size += path.lstat().st_size + sum(_size(folder.path / "objects" / name[:2] / name) for name in new)
        is_old = now - used_ns(path) / 1e9 > MOST_UNUSED_DAYS * 86400
        if entry is None or is_old or size > folder.limit_bytes:
            path.unlink(missing_ok=True)
        else:
            kept |= new
    return kept


def _inside(folder: Path, pattern: str) -> list[Path]:
    """The files two levels down that match; what is behind a link is not ours."""
    return [path for inner in folder.iterdir() if is_own_folder(inner) for path in inner.glob(pattern)]


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0
