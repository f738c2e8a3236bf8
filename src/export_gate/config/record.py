"""A loaded `export-gate.yml`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from export_gate.wall.contract import ModelContract


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """A position in the config file, counted from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The content of `export-gate.yml`, with defaults merged into each model."""

    path: Path
    sha256: str
    """SHA-256 of the file's bytes."""
    python: str | None
    """The project's interpreter as written, relative to the config's folder."""
    pythonpath: tuple[str, ...]
    """Absolute folders put on the worker's sys.path."""
    models: tuple[ModelContract, ...]
    positions: dict[str, Position] = field(default_factory=dict)
    """Dotted key (`models.glyph-head`, `models.glyph-head.dims.batch`) -> its position."""
