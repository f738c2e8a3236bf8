"""What a change to the config does to the check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from export_gate.wall.contract import ModelContract

Effect = Literal["loosened", "tightened", "changed"]
"""Whether the check accepts more, less, or something else than before."""
Policy = Literal["warn", "fail"]
FailOn = Literal["violation", "warning"]

CONFIG = "the config"
"""Stands in place of a model for keys at the top level; no model can have this name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alteration:
    """One key whose meaning differs from the base's."""

    effect: Effect
    model: str
    """A model of either config, or `CONFIG`."""
    key: str = ""
    """Its place in `export-gate.yml` below the model, or at the top level; empty for the model itself."""
    what: str
    """`controls.limit 120 -> 1`, or a sentence; without the model."""

    @property
    def text(self) -> str:
        """With the model, as reports list it."""
        return self.what if self.model == CONFIG else f"`{self.model}`: {self.what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigChange:
    """The alterations of one change; the results keep it, so that judging again does not need git."""

    origin: str
    """`export-gate.yml at 1a2b3c4d5e`."""
    policy: Policy = "warn"
    """The base's `relaxed`, which the change cannot edit."""
    alterations: tuple[Alteration, ...] = ()

    def of(self, effect: Effect) -> tuple[Alteration, ...]:
        """The alterations with that effect, in order."""
        return tuple(each for each in self.alterations if each.effect == effect)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """All that decides what a config checks."""

    models: tuple[ModelContract, ...]
    python: str | None = None
    """The project's interpreter as written, relative to the config's folder."""
    pythonpath: tuple[str, ...] = ()
    """Folders put on the worker's sys.path: absolute, or from the root of the checkout where two commits compare."""
    relaxed: Policy = "warn"
    """What a change that loosens the check gets; the base's value counts."""
    fail_on: FailOn = "violation"
    """The lowest severity that fails the check; the base's value counts if it is lower."""
    waivers_max_days: int = 90
    """The farthest end of a waiver, in days from the day of the check."""
    ignore: tuple[str, ...] = ()
    """Glob patterns of files, from the repository's root, that no model can read."""
