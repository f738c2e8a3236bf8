"""The change makes the check accept more than the base of the change does."""

from __future__ import annotations

from collections.abc import Iterator

from export_gate.loosening.record import CONFIG, ConfigChange
from export_gate.rules.base import Finding, Named


def check(change: ConfigChange) -> Iterator[Finding]:
    """One finding for each key that loosens the check; the base's `relaxed` decides its severity."""
    is_allowed = change.policy == "warn"
    for alteration in change.of("loosened"):
        yield RULE.finding(
            alteration.model,
            f"the change loosens the check: {alteration.what}",
            hint=(
                "Make sure that this is intended, or restore it."
                if is_allowed
                else "Restore it. The base has `relaxed: fail`, so only someone who may merge regardless can accept it."
            ),
            severity="warning" if is_allowed else "violation",
            key=alteration.key if alteration.model != CONFIG else "",
            details=(f"before: {change.origin}",),
        )


RULE = Named(
    name="check-loosened",
    severity="warning",
    summary="The change makes the check accept more than its base does.",
    stage="eager",
    waivable=None,
    owner="contract",
)
