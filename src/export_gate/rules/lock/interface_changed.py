"""A model's interface differs from the one in the lock: which callers break, or what is new."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from export_gate.rules.base import Finding, Severity
from export_gate.rules.lock.base import Change, LockRule
from export_gate.rules.lock.difference import Difference, differences
from export_gate.rules.lock.record import LockUsed
from export_gate.rules.wording import place
from export_gate.wall.contract import ModelContract


def check(change: Change) -> Iterator[Finding]:
    """A violation for each difference that breaks callers, a note for each other one."""
    if change.lock is None:
        return
    name, before = change.contract.name, change.before
    if before is None:
        yield RULE.finding(
            name,
            f"not in {change.lock.origin}, so its interface cannot be compared",
            hint="run `export-gate lock` to record it.",
            severity="note",
        )
        return
    for difference in differences(before, change.after):
        yield _finding(name, difference, change.lock)


def gone(lock: LockUsed) -> Iterator[Finding]:
    """Models that the config no longer has; a warning if the change's own lock omits them as well."""
    for name in lock.gone:
        is_meant = name in lock.dropped
        yield RULE.finding(
            name,
            f"in {lock.origin}, but not in the config: breaks callers that load its artifacts",
            hint=(
                "The lock in this change omits it too: make sure that nobody needs it."
                if is_meant
                else "Restore the model; if the removal is intended, run `export-gate lock` to remove it from the lock."
            ),
            severity="warning" if is_meant else "violation",
        )


def without_targets(lock: LockUsed, contract: ModelContract) -> LockUsed:
    """The lock with only the targets that the contract has, for a run of some targets."""
    model = lock.models.get(contract.name)
    if model is None:
        return lock
    planned = [target.name for target in contract.targets]
    kept = replace(model, targets={name: target for name, target in model.targets.items() if name in planned})
    return replace(lock, models={**lock.models, contract.name: kept})


def _finding(model: str, difference: Difference, lock: LockUsed) -> Finding:
    severity: Severity = "violation" if difference.breaks else "note"
    breaks = f": breaks {difference.breaks}" if difference.breaks else ""
    return Finding(
        rule=RULE.name,
        severity=severity,
        model=model,
        target=difference.target,
        output=difference.output,
        message=f"{place(model, difference.target)}: {difference.what}{breaks}",
        hint=_hint(model, lock, is_breaking=bool(difference.breaks)),
        details=(f"before: {lock.origin}",),
    )


def _hint(model: str, lock: LockUsed, *, is_breaking: bool) -> str:
    if not is_breaking:
        return "No caller breaks; run `export-gate lock` to record the change."
    if not lock.is_base:
        return "Restore it. If the change is intended, inform the callers and record it with `export-gate lock`."
    return (
        "Restore it. If the change is intended, inform the callers, record it with `export-gate lock`, and waive "
        f"`interface-changed` in `models.{model}.waivers` until it is merged."
    )


RULE = LockRule(
    name="interface-changed",
    severity="violation",
    summary="The interface differs from the one in the lock.",
    stage="export",
    waivable=("target", "output"),
    owner="model",
    cause="interface",
    check=check,
)
