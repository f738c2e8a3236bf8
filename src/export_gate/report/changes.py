"""Say what the change does to the check, right under the verdict."""

from __future__ import annotations

from export_gate.loosening.record import ConfigChange
from export_gate.report.record import ChangeView


def change_view(change: ConfigChange | None) -> ChangeView | None:
    """The view of a comparison with the base; None if it found nothing."""
    if change is None or not change.alterations:
        return None
    tightened = (f"tightened: {each.text}" for each in change.of("tightened"))
    changed = (f"changed: {each.text}" for each in change.of("changed"))
    return ChangeView(
        origin=change.origin,
        loosened=tuple(each.text for each in change.of("loosened")),
        otherwise=(*tightened, *changed),
        fails=change.policy == "fail",
    )
