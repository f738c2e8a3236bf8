"""An artifact that still agrees, but with a much smaller margin than in the lock: the next change may break it."""

from __future__ import annotations

from collections.abc import Iterator

from export_gate.rules.base import Finding
from export_gate.rules.lock.base import Change, LockRule
from export_gate.rules.lock.record import Margin
from export_gate.wall.equivalence import ratio
from export_gate.wall.words import rounded

GROWTH = 10.0
"""An order of magnitude; machines differ by a factor of two or three."""
FLOOR = 0.05
"""Share of the tolerance below which an error does not matter, no matter how much it grew."""


def check(change: Change) -> Iterator[Finding]:
    """One finding for each output of each target."""
    name, before = change.contract.name, change.before
    for planned in change.contract.targets if before else ():
        assert before is not None
        old = before.targets.get(planned.name)
        for output, now in change.after.targets[planned.name].margins.items():
            was = old.margins.get(output) if old else None
            if was is not None and has_shrunk(was, now):
                yield RULE.finding(
                    name,
                    (
                        f"the worst error is {rounded(now.measured)} of "
                        f"{rounded(now.allowed)} allowed, and was {rounded(was.measured)} of "
                        f"{rounded(was.allowed)}{_times(was, now)}"
                    ),
                    hint=(
                        "Look for what changed the numbers (a new version of torch or a runtime, another operator, "
                        "half precision). If it is intended, run `export-gate lock` to record it."
                    ),
                    target=planned.name,
                    output=output,
                    measured=now.measured,
                    allowed=now.allowed,
                    details=(f"before: {change.lock.origin}",) if change.lock else (),
                )


def has_shrunk(was: Margin, now: Margin) -> bool:
    """Whether the error grew tenfold, by itself and as a share of its bound, and is no longer negligible.

    Both must grow: larger weights raise error and bound alike, and a changed tolerance changes only the share.
    """
    share, before = ratio(now.measured, now.allowed), ratio(was.measured, was.allowed)
    # Above 1 it is a violation, which is reported by itself.
    return FLOOR <= share <= 1 and now.measured >= GROWTH * was.measured and share >= GROWTH * before


def _times(was: Margin, now: Margin) -> str:
    return f": {now.measured / was.measured:.0f} times as large" if was.measured > 0 else ""


RULE = LockRule(
    name="margin-shrunk",
    severity="warning",
    summary="An error is within its tolerance, but at least ten times as large as in the lock.",
    stage="compare",
    waivable=("target", "output"),
    check=check,
)
