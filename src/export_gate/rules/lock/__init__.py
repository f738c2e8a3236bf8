"""Rules that hold a model against the interface lock; they run where a lock or a budget is."""

from __future__ import annotations

from export_gate.rules.lock import artifact_grew, interface_changed, margin_shrunk
from export_gate.rules.lock.base import LockRule

LOCK_RULES: tuple[LockRule, ...] = (interface_changed.RULE, margin_shrunk.RULE, artifact_grew.RULE)
