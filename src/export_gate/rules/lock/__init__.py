"""Rules that compare a model with the interface lock; they run if there is a lock or a budget."""

from __future__ import annotations

from export_gate.rules.lock import artifact_grew, interface_changed, margin_shrunk
from export_gate.rules.lock.base import LockRule

LOCK_RULES: tuple[LockRule, ...] = (interface_changed.RULE, margin_shrunk.RULE, artifact_grew.RULE)
