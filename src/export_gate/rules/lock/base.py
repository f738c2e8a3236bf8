"""Define a lock rule: a check that compares the locked model with the model as it is now."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from export_gate.rules.base import Finding, Named
from export_gate.rules.lock.record import LockedModel, LockUsed
from export_gate.wall.contract import ModelContract


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One model before and now."""

    contract: ModelContract
    after: LockedModel
    lock: LockUsed | None
    """None if the project has no lock."""

    @property
    def before(self) -> LockedModel | None:
        """The locked model; None if the lock lacks it or there is no lock."""
        return self.lock.models.get(self.contract.name) if self.lock else None


@dataclass(frozen=True, slots=True, kw_only=True)
class LockRule(Named):
    """A named check over one model's change."""

    check: Callable[[Change], Iterable[Finding]]
