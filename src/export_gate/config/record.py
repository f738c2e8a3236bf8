"""A loaded `export-gate.yml`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from export_gate.loosening.record import Checked, FailOn, Policy
from export_gate.wall.contract import ModelContract

WAIVERS_MAX_DAYS = 90


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
    relaxed: Policy = "warn"
    """What a change that loosens the check gets; the base's value counts."""
    fail_on: FailOn = "violation"
    """The lowest severity that fails the check; the base's value counts if it is lower."""
    waivers_max_days: int = WAIVERS_MAX_DAYS
    """The farthest end of a waiver, in days from the day of the check."""
    ignore: tuple[str, ...] = ()
    """Glob patterns of files, from the repository's root, that no model can read."""
    positions: dict[str, Position] = field(default_factory=dict)
    """Dotted key (`models.glyph-head`, `models.glyph-head.dims.batch`) -> its position."""

    @property
    def checked(self) -> Checked:
        """What decides what it checks, to compare it with another config."""
        return Checked(
            models=self.models,
            python=self.python,
            pythonpath=self.pythonpath,
            relaxed=self.relaxed,
            fail_on=self.fail_on,
            waivers_max_days=self.waivers_max_days,
            ignore=self.ignore,
        )
