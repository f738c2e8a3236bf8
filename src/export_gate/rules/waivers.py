"""A rule's findings with the waived ones told apart, case by case.

Findings gather many control inputs under the worst one. So a waiver is not held against findings but against what they
are made from: the rule runs once on the observation without what is waived, and once on that alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from export_gate.rules import nothing_compared
from export_gate.rules.base import Finding, Rule
from export_gate.rules.waivable import WAIVABLE
from export_gate.rules.wording import place, targets_key
from export_gate.wall.contract import ModelContract, Waiver
from export_gate.wall.observation import CaseResult, Comparison, ModelObservation, NonfiniteCount

Wanted = Callable[[str | None, str | None, str | None], bool]
"""Whether to keep a (target, output, case)."""

HIDING = ("structure-mismatch", "shape-mismatch", "dtype-mismatch", "run-failed", "range-narrowed")
"""Rules whose findings mean that no numbers were compared there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What a rule found once waivers are applied."""

    findings: tuple[Finding, ...] = ()
    used: tuple[Waiver, ...] = ()
    """Waivers that match something, expired ones too."""


def apply(rule: Rule, contract: ModelContract, observation: ModelObservation, today: str) -> Applied:
    """The rule's findings; waived ones are notes, and one whose waiver expired says so.

    Args:
        rule: what to check.
        contract: the model's promises and waivers.
        observation: what was seen of the model.
        today: ISO date; a waiver holds up to its own.
    """
    waivers = [waiver for waiver in contract.waivers if waiver.rule == rule.name and rule.name in WAIVABLE]
    seen = without_waived_nonfinite(contract, observation, today) if rule.name == "value-mismatch" else observation
    if not waivers:
        return Applied(findings=tuple(rule.check(contract, seen)))
    if "case" in WAIVABLE[rule.name]:
        return _apply_by_case(rule, contract, seen, waivers, today)
    return apply_to_findings(tuple(rule.check(contract, seen)), waivers, today, may_waive=_ran_to_its_end(seen))


def apply_to_findings(
    findings: Sequence[Finding],
    waivers: Sequence[Waiver],
    today: str,
    may_waive: Callable[[Finding], bool] = lambda _finding: True,
) -> Applied:
    """Waivers held against whole findings, for rules that do not gather control inputs."""
    results: list[Finding] = []
    used: list[Waiver] = []
    for finding in findings:
        matching = [waiver for waiver in waivers if _accepts(waiver, finding) and may_waive(finding)]
        holding = [waiver for waiver in matching if waiver.holds_on(today)]
        used += holding[:1] or matching
        results.append(waived(finding, holding[0]) if holding else expired(finding, matching))
    return Applied(findings=tuple(results), used=tuple(used))


def waived(finding: Finding, waiver: Waiver) -> Finding:
    """The finding as a note whose hint names the waiver."""
    return replace(
        finding, severity="note", waiver=waiver, hint=f"Waived until {waiver.until}: {closed(waiver.reason)}"
    )


def expired(finding: Finding, waivers: Sequence[Waiver]) -> Finding:
    """The finding with a word on the waiver that accepted it before; without any, as it is."""
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


def left_unmeasured(
    contract: ModelContract, observation: ModelObservation, findings: Sequence[Finding]
) -> Iterator[Finding]:
    """Violations for outputs that waivers leave without a single compared element: zero comparisons is no pass."""
    for planned in contract.targets:
        hidden = [f for f in findings if f.waiver and f.target == planned.name and f.rule in HIDING]
        measured = _measured(observation, planned.name)
        for finding in hidden:
            if not (measured & {finding.output} if finding.output else measured):
                yield Finding(
                    rule=nothing_compared.RULE.name,
                    severity="violation",
                    model=contract.name,
                    target=planned.name,
                    output=finding.output,
                    message=(
                        f"{place(contract.name, planned.name, finding.output)}: the waiver of {finding.rule} covers "
                        "every control input, so no element was compared"
                    ),
                    hint=(
                        f"Narrow the waiver's `case` in `models.{contract.name}.waivers`, or remove `{planned.name}` "
                        f"from {targets_key(contract)}: a waiver accepts only what was measured."
                    ),
                )
                break


def without_waived_nonfinite(contract: ModelContract, observation: ModelObservation, today: str) -> ModelObservation:
    """Comparisons as if their waived NaN and infinities agreed, so that the finite entries beside them are judged."""
    waivers = [w for w in contract.waivers if w.rule == "nonfinite-mismatch" and w.holds_on(today)]
    if not waivers:
        return observation

    def cleared(target: str, case: str, leaf: Comparison) -> Comparison:
        if not any(_matches(waiver, target, leaf.output, case) for waiver in waivers):
            return leaf
        none = NonfiniteCount()
        return replace(leaf, nonfinite_mismatched=0, expected_nonfinite=none, actual_nonfinite=none)

    return replace(
        observation,
        targets=tuple(
            replace(
                target,
                cases=tuple(
                    replace(case, outputs=tuple(cleared(target.target, case.case, leaf) for leaf in case.outputs))
                    for case in target.cases
                ),
            )
            for target in observation.targets
        ),
    )


def _apply_by_case(
    rule: Rule, contract: ModelContract, observation: ModelObservation, waivers: Sequence[Waiver], today: str
) -> Applied:
    holding = [waiver for waiver in waivers if waiver.holds_on(today)]
    rest = _kept(rule, observation, lambda *where: not any(_matches(waiver, *where) for waiver in holding))
    alone = _without_ends(observation)
    found: list[Finding] = []
    used: list[Waiver] = []
    for number, waiver in enumerate(holding):
        earlier = holding[:number]
        part = _kept(rule, alone, lambda *where, w=waiver, e=earlier: _first_match(w, e, where))
        mine = [waived(finding, waiver) for finding in rule.check(contract, part)]
        used += [waiver] if mine else []
        found += mine
    hits: dict[tuple[str | None, str | None], list[Waiver]] = {}
    for waiver in (w for w in waivers if w not in holding):
        part = _kept(rule, alone, lambda *where, w=waiver: _matches(w, *where))
        for finding in rule.check(contract, part):
            hits.setdefault((finding.target, finding.output), []).append(waiver)
    used += [waiver for matched in hits.values() for waiver in matched]
    open_ones = [expired(f, hits.get((f.target, f.output), ())) for f in rule.check(contract, rest)]
    return Applied(findings=(*open_ones, *found), used=tuple(used))


def _first_match(waiver: Waiver, earlier: Sequence[Waiver], where: tuple[str | None, str | None, str | None]) -> bool:
    return _matches(waiver, *where) and not any(_matches(other, *where) for other in earlier)


def _matches(waiver: Waiver, target: str | None, output: str | None, case: str | None) -> bool:
    return (
        waiver.target in (None, target)
        and (waiver.output == "*" or fnmatchcase(output or "", waiver.output))
        and (waiver.case == "*" or fnmatchcase(case or "", waiver.case))
    )


def _accepts(waiver: Waiver, finding: Finding) -> bool:
    return finding.severity != "note" and _matches(waiver, finding.target, finding.output, finding.case)


def _ran_to_its_end(observation: ModelObservation) -> Callable[[Finding], bool]:
    """Of a target that ended early, nothing is accepted: what lies behind its end was never compared."""
    ended = {target.target for target in observation.targets if target.failure}
    return lambda finding: finding.target not in ended


def _kept(rule: Rule, observation: ModelObservation, wanted: Wanted) -> ModelObservation:
    """What the rule looks at, as far as it is wanted: output leaves, or whole cases where it has no outputs."""

    def cut(target: str | None, cases: Sequence[CaseResult]) -> tuple[CaseResult, ...]:
        if "output" not in WAIVABLE[rule.name]:
            return tuple(case for case in cases if wanted(target, None, case.case))
        return tuple(
            replace(case, outputs=tuple(leaf for leaf in case.outputs if wanted(target, leaf.output, case.case)))
            for case in cases
        )

    return replace(
        observation,
        golden=cut(None, observation.golden),
        targets=tuple(replace(target, cases=cut(target.target, target.cases)) for target in observation.targets),
    )


def _without_ends(observation: ModelObservation) -> ModelObservation:
    """Without what ended early and goldens that could not be compared: no waiver covers those."""
    return replace(
        observation,
        failure=None,
        golden=tuple(case for case in observation.golden if not (case.failure or case.structure)),
        targets=tuple(replace(target, failure=None) for target in observation.targets),
    )


def _measured(observation: ModelObservation, target: str) -> set[str]:
    """Outputs of which some element was compared."""
    return {
        leaf.output
        for seen in observation.targets
        if seen.target == target
        for case in seen.cases
        if not (case.structure or case.failure)
        for leaf in case.outputs
        if leaf.elements and (leaf.error_quantiles or not leaf.nonfinite_mismatched)
    }
