"""Turn contracts and observations into the verdict. A pure function: results can be judged again without an export."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from export_gate.loosening.record import ConfigChange
from export_gate.rules import CATALOGUE, NAMED, RULES, check_loosened, unpushed_file, waiver_unused
from export_gate.rules.base import SEVERITIES, Finding
from export_gate.rules.follow_ups import without_follow_ups
from export_gate.rules.lock import LOCK_RULES
from export_gate.rules.lock.base import Change
from export_gate.rules.lock.facts import locked_model
from export_gate.rules.lock.interface_changed import gone, without_targets
from export_gate.rules.lock.record import LockUsed
from export_gate.rules.measure import Measured, measure_run
from export_gate.rules.waivers import Applied, apply, apply_to_findings, left_unmeasured
from export_gate.wall.contract import ModelContract
from export_gate.wall.equivalence import ratio
from export_gate.wall.observation import OWN_FAULT, ModelObservation, RunObservation

Verdict = Literal["verified", "violations", "problem", "broken"]
EXIT_CODES: dict[Verdict, int] = {"verified": 0, "violations": 1, "problem": 2, "broken": 3}
"""Ordered by precedence: a later verdict of one model outweighs an earlier one of another."""


SortKey = tuple[int, bool, int, float, str, str, int, str, str]
"""Severity, not waived, causal order, measured / allowed, model, target, case order, output, message."""

POSITIONS = {rule.name: place for place, rule in enumerate(CATALOGUE)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a judgement depends on besides contracts and observations."""

    today: str = "9999-12-31"
    """ISO date up to which waivers must hold; on an unknown day none does."""
    is_whole: bool = True
    """Whether every target and control input was to run; otherwise an unused waiver means nothing."""
    lock: LockUsed | None = None
    """The lock to compare interfaces and margins with; None if there is no lock."""
    change: ConfigChange | None = None
    """What the change does to the check; None if there is no base to compare with."""
    config: str = ""
    """The config's path from the root of the checkout."""
    unpushed: dict[str, str] = field(default_factory=dict)
    """Files that a push does not contain as they were verified, from the root of the checkout -> why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What the gate says about one run."""

    verdict: Verdict
    findings: tuple[Finding, ...]
    """Violations first; then causes before effects (the order of RULES), the worst measured / allowed first."""
    measured: tuple[Measured, ...] = field(default=(), compare=False, repr=False)
    """What the findings group, for reports that show the same measurements in other ways."""

    @property
    def exit_code(self) -> int:
        """0 verified, 1 violations, 2 a model could not be checked as declared, 3 the gate itself failed."""
        return EXIT_CODES[self.verdict]


def judge(contracts: Sequence[ModelContract], run: RunObservation, terms: Terms = Terms()) -> Judgement:
    """Apply every rule to every planned model; a model that is planned but not observed breaks the verdict."""
    measured = measure_run(contracts, run)
    found = [_findings(model, terms) for model in measured]
    # Findings that belong to no observed model, or to none alone.
    missing = list(gone(terms.lock)) if terms.lock else []
    missing += unpushed_file.check(run.models, terms.config, terms.unpushed)
    missing += check_loosened.check(terms.change) if terms.change else ()
    keyed = [pair for pairs in found for pair in pairs]
    keyed += [(_sort_key(finding, {}), finding) for finding in map(_blamed, missing)]
    keyed.sort(key=lambda pair: pair[0])
    verdicts = [_verdict(model, [f for _, f in pairs]) for model, pairs in zip(measured, found, strict=True)]
    verdicts += ["violations" for finding in missing if finding.severity == "violation"]
    observed = {model.model for model in run.models}
    # Without an environment the worker never started, and an absence of findings means nothing.
    if any(contract.name not in observed for contract in contracts) or (contracts and run.environment is None):
        verdicts.append("broken")
    return Judgement(
        verdict=max(verdicts, key=EXIT_CODES.__getitem__, default="verified"),
        findings=tuple(finding for _, finding in keyed),
        measured=measured,
    )


def _findings(measured: Measured, terms: Terms) -> list[tuple[SortKey, Finding]]:
    observation = measured.observation
    order = {member.name: place for place, member in enumerate(observation.control_inputs)}
    applied = [apply(rule, measured, terms.today) for rule in RULES]
    applied += [] if observation.problem else _against_lock(measured, terms)
    # Only now: a waiver applies to a rule's own findings, whether or not a root cause explains them.
    found = without_follow_ups([_blamed(finding) for each in applied for finding in each.findings], observation)
    found += left_unmeasured(measured, found)
    if terms.is_whole and _ran_whole(observation):
        found += waiver_unused.check(measured.contract, [waiver for each in applied for waiver in each.used])
    return [(_sort_key(finding, order), finding) for finding in found]


def _blamed(finding: Finding) -> Finding:
    """The finding with its rule's owner and cause, if it has none of its own."""
    rule = NAMED[finding.rule]
    if finding.owner is not None or finding.cause != "unknown":
        return finding
    return replace(finding, owner=rule.owner, cause=rule.cause)


def _against_lock(measured: Measured, terms: Terms) -> list[Applied]:
    contract = measured.contract
    after = locked_model(measured, is_whole=terms.is_whole)
    # A run of some targets must not report the others as gone.
    lock = terms.lock if terms.is_whole or terms.lock is None else without_targets(terms.lock, contract)
    change = Change(contract=contract, after=after, lock=lock)
    return [
        apply_to_findings(tuple(rule.check(change)), [w for w in contract.waivers if w.rule == rule.name], terms.today)
        for rule in LOCK_RULES
    ]


def _ran_whole(observation: ModelObservation) -> bool:
    """Whether everything that a waiver can refer to was observed."""
    return not (observation.problem or observation.failure or any(target.failure for target in observation.targets))


def _sort_key(finding: Finding, case_order: dict[str, int]) -> SortKey:
    return (
        SEVERITIES.index(finding.severity),
        # False sorts first: waived violations lead the notes.
        finding.waiver is None,
        POSITIONS[finding.rule],
        -ratio(finding.measured, finding.allowed),
        finding.model,
        finding.target or "",
        case_order.get(finding.case or "", -1),
        finding.output or "",
        finding.message,
    )


def _verdict(measured: Measured, findings: Sequence[Finding]) -> Verdict:
    ends = (measured.observation.failure, *(target.failure for target in measured.observation.targets))
    if any(failure is not None and failure.type == OWN_FAULT for failure in ends):
        return "broken"
    if measured.observation.problem:
        return "problem"
    return "violations" if any(finding.severity == "violation" for finding in findings) else "verified"
