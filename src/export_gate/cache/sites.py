"""Files among installed packages that no installer put there."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from export_gate.cache.present import Present


def loose_files(present: Present, site: str, entries: Collection[str]) -> Iterator[str]:
    """The files of those used entries that are of no distribution, so that no version tells when they change."""
    place = present.root / site
    loose = set(entries) - _owned(place) if entries else set()
    for entry in sorted(loose):
        if entry and not entry.endswith((".dist-info", ".egg-info")):
            yield from present.below(present.named(str(place / entry)))


def _owned(place: Path) -> set[str]:
    """The entries that distributions list as theirs."""
    found = set()
    for record in place.glob("*.dist-info/RECORD"):
        lines = record.read_text(encoding="utf-8", errors="replace").splitlines()
        # `package/module.py,sha256=...,123`: the first part of the path, or a module's whole name.
        found |= {line.partition("/")[0].partition(",")[0] for line in lines}
    return found
