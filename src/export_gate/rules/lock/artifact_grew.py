"""An artifact that is larger than its budget."""

from __future__ import annotations

from collections.abc import Iterator

from export_gate.rules.base import Finding
from export_gate.rules.lock.base import Change, LockRule
from export_gate.rules.wording import targets_key
from export_gate.wall.contract import Budget, ModelContract, TargetName


def check(change: Change) -> Iterator[Finding]:
    """One finding for each artifact and bound; a budget's size applies even without a lock."""
    before = change.before
    for planned in change.contract.targets:
        old = before.targets.get(planned.name) if before else None
        for export, size in change.after.targets[planned.name].sizes.items():
            was = old.sizes.get(export) if old else None
            for words in _excesses(planned.budget, size, was):
                yield _finding(change.contract, planned.name, planned.budget, export, words)


def _excesses(budget: Budget, size: int, was: int | None) -> Iterator[str]:
    if budget.max_bytes is not None and size > budget.max_bytes:
        yield f"the artifact has {size} bytes, more than its budget of {budget.max_bytes}"
    if budget.growth is not None and was and size > was * (1 + budget.growth):
        grown = f"{(size / was - 1) * 100:.3g}%"
        allowed = f"{budget.growth * 100:g}%"
        yield f"the artifact has {size} bytes, {grown} more than the {was} in the lock; {allowed} is allowed"


def _finding(contract: ModelContract, target: TargetName, budget: Budget, export: str, words: str) -> Finding:
    at = None if export == "main" else f"separate export at {export}"
    return RULE.finding(
        contract.name,
        words,
        hint=(
            "Look for weights that are stored twice, in a wider dtype or as constants of the graph. If the size is "
            f"intended, raise {targets_key(contract, target, 'budget')}, or record it with `export-gate lock`."
        ),
        severity=budget.exceeded,
        at=at,
        target=target,
    )


RULE = LockRule(
    name="artifact-grew",
    severity="violation",
    summary="An artifact is larger than its budget.",
    stage="convert",
    waivable=("target",),
    check=check,
)
