"""Say what the change does to the check, right under the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from export_gate.loosening.record import Alteration, ConfigChange
from export_gate.report.record import ChangeView

CROWD, CROWD_OF_MODELS = 5, 20
"""So many alterations of one kind, in one model or in all, are listed after the others.

A report shows a part of a long list, and many that mean little must not hide one that means much.
"""


def change_view(change: ConfigChange | None) -> ChangeView | None:
    """The view of a comparison with the base; None if it found nothing."""
    if change is None or not change.alterations:
        return None
    tightened = (f"tightened: {each.text}" for each in change.of("tightened"))
    changed = (f"changed: {each.text}" for each in change.of("changed"))
    return ChangeView(
        origin=change.origin,
        loosened=tuple(each.text for each in _unburied(change.of("loosened"))),
        otherwise=(*tightened, *changed),
        fails=change.policy == "fail",
    )


def _unburied(alterations: Sequence[Alteration]) -> list[Alteration]:
    """In their order, but crowds last."""
    own = Counter((each.model, _kind(each)) for each in alterations)
    all_ = Counter(map(_kind, alterations))

    def is_of_crowd(each: Alteration) -> bool:
        return own[each.model, _kind(each)] > CROWD or all_[_kind(each)] > CROWD_OF_MODELS

    return sorted(alterations, key=is_of_crowd)


def _kind(alteration: Alteration) -> str:
    """The first part of the key; for workflows, the file with its job."""
    return alteration.key.partition(".")[0] or alteration.what.partition(": ")[0]
