"""Files that a change moved: one with the same bytes at another path is what was verified before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from export_gate.config import Config
from export_gate.loosening.record import Alteration, ConfigChange
from export_gate.run.base import Base
from export_gate.run.contents import is_same_file
from export_gate.wall.contract import ModelContract


def with_moved_files(
    change: ConfigChange, before: Config, after: Config, base: Base, environment: Mapping[str, str]
) -> ConfigChange:
    """The change, in which another path of a handed-in file loosens nothing where git has the same bytes at both."""

    def judged(alteration: Alteration) -> Alteration:
        old, new = _artifact(before, alteration), _artifact(after, alteration)
        if alteration.effect != "loosened" or old is None or new is None:
            return alteration
        if not is_same_file(before.place.parent / old, after.place.parent / new, base, environment):
            return alteration
        return replace(alteration, effect="changed", what=f"{alteration.key} {old} -> {new}, the same file")

    return replace(change, alterations=tuple(map(judged, change.alterations)))


def _artifact(config: Config, alteration: Alteration) -> str | None:
    """The file of the target whose artifact the alteration is about."""
    contract = next((each for each in config.models if each.name == alteration.model), None)
    return None if contract is None else _of_target(contract, alteration.key)


def _of_target(contract: ModelContract, key: str) -> str | None:
    return next((t.artifact for t in contract.targets if key == f"targets.{t.name}.artifact"), None)
