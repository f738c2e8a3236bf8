"""A line of source code, as facts and findings carry it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLine:
    """A line of the user's own source."""

    path: str
    line: int
    text: str
