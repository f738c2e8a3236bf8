"""Separate a rule's waived findings from the others, measurement by measurement.

A finding gathers many control inputs under the worst one. So a waiver does not accept findings but the measurements
that they group: the rule groups the measurements that no waiver covers, then those of each waiver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from export_gate.rules import nothing_compared
from export_gate.rules.base import Finding, Rule
from export_gate.rules.measure import Failed, Item, Measured, Measurement
from export_gate.rules.wording import targets_key
from export_gate.wall.contract import TargetName, Waiver
from export_gate.wall.observation import CaseResult

HIDING = ("structure-mismatch", "shape-mismatch", "dtype-mismatch", "run-failed", "range-narrowed")
"""Rules whose findings mean that no numbers were compared there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What a rule found once waivers are applied."""

    findings: tuple[Finding, ...] = ()
    used: tuple[Waiver, ...] = ()
    """Waivers that match something, expired ones too."""


def apply(rule: Rule, measured: Measured, today: str) -> Applied:
    """The rule's findings; waived ones are notes, and one whose waiver expired says so.

    Args:
        rule: what to check.
        measured: the model.
        today: ISO date; a waiver holds up to its own.
    """
    waivers = [w for w in measured.contract.waivers if w.rule == rule.name and rule.waivable is not None]
    seen = without_waived_nonfinite(measured, today) if rule.name == "value-mismatch" else measured
    if not waivers:
        return Applied(findings=tuple(rule.check(seen)))
    if "case" in (rule.waivable or ()):
        return _apply_by_case(rule, seen, waivers, today)
    # What was not compared to its end may hide worse findings than the one that the waiver names.
    ended = {failed.target for failed in measured.failed if failed.is_end and failed.target}
    return apply_to_findings(tuple(rule.check(seen)), waivers, today, may_waive=lambda f: f.target not in ended)


def apply_to_findings(
    findings: Sequence[Finding],
    waivers: Sequence[Waiver],
    today: str,
    may_waive: Callable[[Finding], bool] = lambda _finding: True,
) -> Applied:
    """Waivers of whole findings, for rules that do not gather control inputs."""
    results: list[Finding] = []
    used: list[Waiver] = []
    for finding in findings:
        matching = [waiver for waiver in waivers if _accepts(waiver, finding) and may_waive(finding)]
        holding = [waiver for waiver in matching if waiver.holds_on(today)]
        # One waiver is enough, but of those that expired each is used: none of them is superfluous.
        used += holding[:1] or matching
        results.append(waived(finding, holding[0]) if holding else expired(finding, matching))
    return Applied(findings=tuple(results), used=tuple(used))


def _apply_by_case(rule: Rule, measured: Measured, waivers: Sequence[Waiver], today: str) -> Applied:
    holding = [waiver for waiver in waivers if waiver.holds_on(today)]

    def first(item: Item) -> Waiver | None:
        return next((waiver for waiver in holding if _covers(waiver, item)), None)

    found: list[Finding] = []
    used: list[Waiver] = []
    for waiver in holding:
        # Each measurement goes to the first waiver that covers it, so that it is in one finding only.
        # By identity, since two waivers may be equal. `w=`: a lambda would see the last waiver of the loop.
        mine = tuple(rule.check(measured.only(lambda item, w=waiver: first(item) is w)))  # type: ignore[misc]
        used += [waiver] if mine else []
        found += [waived(finding, waiver) for finding in mine]
    # Expired waivers accept nothing, but a finding that counts again names the one that it had.
    hits: dict[tuple[str | None, str | None], list[Waiver]] = {}
    for waiver in (w for w in waivers if w not in holding):
        for finding in rule.check(measured.only(lambda item, w=waiver: _covers(w, item))):  # type: ignore[misc]
            hits.setdefault((finding.target, finding.output), []).append(waiver)
    used += [waiver for matched in hits.values() for waiver in matched]
    rest = rule.check(measured.only(lambda item: first(item) is None))
    return Applied(findings=(*(expired(f, hits.get((f.target, f.output), ())) for f in rest), *found), used=tuple(used))


def waived(finding: Finding, waiver: Waiver) -> Finding:
    """The finding as a note whose hint names the waiver."""
    return replace(
        finding, severity="note", waiver=waiver, hint=f"Waived until {waiver.until}: {closed(waiver.reason)}"
    )


def expired(finding: Finding, waivers: Sequence[Waiver]) -> Finding:
    """The finding, whose hint names the waiver that accepted it before; unchanged if there was none."""
    if not waivers:
        return finding
    latest = max(waivers, key=lambda waiver: waiver.until)
    return replace(
        finding,
        hint=f"Its waiver expired on {latest.until} ({latest.reason.strip()}), so it counts again. {finding.hint}",
    )


def closed(reason: str) -> str:
    """The reason as a sentence."""
    text = reason.strip()
    return text if text[-1:] in (".", "!", "?") else f"{text}."


def left_unmeasured(measured: Measured, findings: Sequence[Finding]) -> Iterator[Finding]:
    """Violations for outputs that waivers leave without a single compared element: zero comparisons are not a pass."""
    contract = measured.contract
    for planned in contract.targets:
        hidden = [f for f in findings if f.waiver and f.target == planned.name and f.rule in HIDING]
        compared = {leaf.output for leaf in measured.of(planned.name) if _is_compared(leaf)}
        for finding in hidden:
            if not (compared & {finding.output} if finding.output else compared):
                yield _unmeasured(measured, planned.name, finding)
                break


def _unmeasured(measured: Measured, target: TargetName, finding: Finding) -> Finding:
    contract = measured.contract
    return nothing_compared.RULE.finding(
        contract.name,
        f"the waiver of {finding.rule} covers every control input, so no element was compared",
        hint=(
            f"Narrow the waiver's `case` in `models.{contract.name}.waivers`, or remove `{target}` from "
            f"{targets_key(contract)}: a waiver accepts only what was measured."
        ),
        target=target,
        output=finding.output,
    )


def without_waived_nonfinite(measured: Measured, today: str) -> Measured:
    """Without the faults of waived NaN and infinities, so that the finite entries beside them are judged."""
    waivers = [w for w in measured.contract.waivers if w.rule == "nonfinite-mismatch" and w.holds_on(today)]

    def cleared(leaf: Measurement) -> Measurement:
        is_waived = leaf.fault == "nonfinite" and any(_covers(waiver, leaf) for waiver in waivers)
        return replace(leaf, faults=leaf.faults[1:]) if is_waived else leaf

    return replace(measured, leaves=tuple(map(cleared, measured.leaves))) if waivers else measured


def _covers(waiver: Waiver, item: Item) -> bool:
    """Whether the waiver accepts this; nothing accepts an end, or a golden that could not be compared."""
    if isinstance(item, CaseResult) or (isinstance(item, Failed) and item.is_end):
        return False
    return _matches(waiver, item.target, item.output if isinstance(item, Measurement) else None, item.case)


def _accepts(waiver: Waiver, finding: Finding) -> bool:
    return finding.severity != "note" and _matches(waiver, finding.target, finding.output, finding.case)


def _matches(waiver: Waiver, target: str | None, output: str | None, case: str | None) -> bool:
    return (
        waiver.target in (None, target)
        and (waiver.output == "*" or fnmatchcase(output or "", waiver.output))
        and (waiver.case == "*" or fnmatchcase(case or "", waiver.case))
    )


def _is_compared(leaf: Measurement) -> bool:
    """Whether some element was compared."""
    comparison = leaf.comparison
    return bool(comparison.elements and (comparison.error_quantiles or not comparison.nonfinite_mismatched))
