"""A loaded `export-gate.yml`."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from export_gate.loosening.record import Checked


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """A position in the config file, counted from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(Checked):
    """The content of `export-gate.yml`, with defaults merged into each model."""

    path: Path
    sha256: str
    """SHA-256 of the file's bytes."""
    positions: dict[str, Position] = field(default_factory=dict)
    """Dotted key (`models.glyph-head`, `models.glyph-head.dims.batch`) -> its position."""

    @property
    def place(self) -> Path:
        """The file's path as it is written, absolute: a link that leads to it stays, as in load_config."""
        return Path(os.path.abspath(self.path))  # noqa: PTH100 - resolve() follows links
