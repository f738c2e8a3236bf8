"""What a rule over the interface lock is: a check of a model as it was locked against the model as it is now."""

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
    """None where the project has no lock."""

    @property
    def before(self) -> LockedModel | None:
        """As locked; None where the lock lacks the model or there is no lock."""
        return self.lock.models.get(self.contract.name) if self.lock else None


@dataclass(frozen=True, slots=True, kw_only=True)
class LockRule(Named):
    """A named check over one model's change."""

    check: Callable[[Change], Iterable[Finding]]
