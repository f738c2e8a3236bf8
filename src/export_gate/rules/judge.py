"""Turn contracts and observations into the verdict. A pure function: results can be judged again without an export."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from export_gate.rules import CATALOGUE, RULES, waiver_unused
from export_gate.rules.base import SEVERITIES, Finding, Severity
from export_gate.rules.lock import LOCK_RULES
from export_gate.rules.lock.base import Change
from export_gate.rules.lock.facts import locked_model
from export_gate.rules.lock.interface_changed import gone, without_targets
from export_gate.rules.lock.record import LockUsed
from export_gate.rules.waivers import Applied, apply, apply_to_findings, left_unmeasured
from export_gate.wall.contract import ModelContract, TargetName
from export_gate.wall.equivalence import ratio, worst_norm
from export_gate.wall.observation import ModelObservation, RunObservation
from export_gate.wall.tolerance import is_inexact, resolve_tolerance

Verdict = Literal["verified", "violations", "problem", "broken"]
EXIT_CODES: dict[Verdict, int] = {"verified": 0, "violations": 1, "problem": 2, "broken": 3}
"""Ordered by precedence: a later verdict of one model outweighs an earlier one of another."""


OWN_FAULT = "an error of export-gate itself"
"""A failure of this type says nothing about the model."""

SortKey = tuple[int, bool, int, float, str, str, int, str, str]
"""Severity, not waived, causal order, measured / allowed, model, target, case order, output, message."""

POSITIONS = {rule.name: place for place, rule in enumerate(CATALOGUE)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a judgement depends on beside contracts and observations."""

    today: str = "9999-12-31"
    """ISO date up to which waivers must hold; on an unknown day none does."""
    is_whole: bool = True
    """Whether every target and control input was to run; otherwise an unused waiver means nothing."""
    lock: LockUsed | None = None
    """What interfaces and margins are held against; None is no lock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetSummary:
    """One cell of the table of models and targets."""

    target: TargetName
    verdict: Literal["verified", "violations", "not-reached"]
    """`not-reached`: the model ended before its targets."""
    violations: int = 0
    warnings: int = 0
    notes: int = 0
    cases: int = 0
    """Control inputs at which outputs were compared."""
    elements: int = 0
    """Elements compared over all of them."""
    worst_ratio: float | None = None
    """Largest measured / allowed over all float outputs, passing ones included; None without any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSummary:
    """One row of the table of models and targets."""

    model: str
    verdict: Verdict
    """`broken`: planned, but not observed."""
    violations: int = 0
    warnings: int = 0
    notes: int = 0
    targets: tuple[TargetSummary, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What the gate says about one run."""

    verdict: Verdict
    findings: tuple[Finding, ...]
    """Violations first; then causes before effects (the order of RULES), the worst measured / allowed first."""
    models: tuple[ModelSummary, ...]
    """In the contracts' order."""

    @property
    def exit_code(self) -> int:
        """0 verified, 1 violations, 2 a model could not be checked as declared, 3 the gate itself failed."""
        return EXIT_CODES[self.verdict]

    def count(self, severity: Severity) -> int:
        """Number of findings of that severity."""
        return sum(finding.severity == severity for finding in self.findings)


def judge(contracts: Sequence[ModelContract], run: RunObservation, terms: Terms = Terms()) -> Judgement:
    """Apply every rule to every planned model; a model that is planned but not observed breaks the verdict."""
    keyed: list[tuple[SortKey, Finding]] = []
    models: list[ModelSummary] = []
    for contract in contracts:
        seen = [observation for observation in run.models if observation.model == contract.name]
        found = [pair for observation in seen for pair in _findings(contract, observation, terms)]
        keyed += found
        models.append(_summary(contract, seen, [finding for _, finding in found]))
    missing = list(gone(terms.lock)) if terms.lock else []
    keyed += [(_sort_key(finding, {}), finding) for finding in missing]
    keyed.sort(key=lambda pair: pair[0])
    verdicts: list[Verdict] = [model.verdict for model in models]
    verdicts += ["violations" for finding in missing if finding.severity == "violation"]
    if contracts and run.environment is None:
        verdicts.append("broken")
    return Judgement(
        verdict=max(verdicts, key=EXIT_CODES.__getitem__, default="verified"),
        findings=tuple(finding for _, finding in keyed),
        models=tuple(models),
    )


def _findings(contract: ModelContract, observation: ModelObservation, terms: Terms) -> list[tuple[SortKey, Finding]]:
    controls = observation.controls
    order = {member.name: place for place, member in enumerate(controls.inputs)} if controls else {}
    applied = [apply(rule, contract, observation, terms.today) for rule in RULES]
    applied += [] if observation.problem else _against_lock(contract, observation, terms)
    found = [finding for each in applied for finding in each.findings]
    found += left_unmeasured(contract, observation, found)
    if terms.is_whole and _ran_whole(observation):
        found += waiver_unused.check(contract, [waiver for each in applied for waiver in each.used])
    return [(_sort_key(finding, order), finding) for finding in found]


def _against_lock(contract: ModelContract, observation: ModelObservation, terms: Terms) -> list[Applied]:
    after = locked_model(contract, observation, is_whole=terms.is_whole)
    lock = terms.lock if terms.is_whole or terms.lock is None else without_targets(terms.lock, contract)
    change = Change(contract=contract, after=after, lock=lock)
    return [
        apply_to_findings(tuple(rule.check(change)), [w for w in contract.waivers if w.rule == rule.name], terms.today)
        for rule in LOCK_RULES
    ]


def _ran_whole(observation: ModelObservation) -> bool:
    """Whether everything that a waiver may be about was seen."""
    return not (observation.problem or observation.failure or any(target.failure for target in observation.targets))


def _sort_key(finding: Finding, case_order: dict[str, int]) -> SortKey:
    return (
        SEVERITIES.index(finding.severity),
        finding.waiver is None,
        POSITIONS[finding.rule],
        -ratio(finding.measured, finding.allowed),
        finding.model,
        finding.target or "",
        case_order.get(finding.case or "", -1),
        finding.output or "",
        finding.message,
    )


def _summary(contract: ModelContract, seen: Sequence[ModelObservation], findings: Sequence[Finding]) -> ModelSummary:
    violations = _count(findings, "violation")
    verdict: Verdict = "violations" if violations else "verified"
    if not seen:
        verdict = "broken"
    elif any(observation.problem for observation in seen):
        verdict = "problem"
    if any(_is_own_fault(observation) for observation in seen):
        verdict = "broken"
    return ModelSummary(
        model=contract.name,
        verdict=verdict,
        violations=violations,
        warnings=_count(findings, "warning"),
        notes=_count(findings, "note"),
        targets=tuple(
            _target_summary(contract, planned.name, seen, [f for f in findings if f.target == planned.name])
            for planned in contract.targets
        ),
    )


def _is_own_fault(observation: ModelObservation) -> bool:
    failures = (observation.failure, *(target.failure for target in observation.targets))
    return any(failure is not None and failure.type == OWN_FAULT for failure in failures)


def _target_summary(
    contract: ModelContract, target: TargetName, seen: Sequence[ModelObservation], findings: Sequence[Finding]
) -> TargetSummary:
    observed = [found for observation in seen for found in observation.targets if found.target == target]
    comparisons = [leaf for found in observed for case in found.cases for leaf in case.outputs]
    violations = _count(findings, "violation")
    failed = violations > 0 or any(found.failure for found in observed)
    ratios = [
        worst_norm(leaf, resolve_tolerance(contract, target, leaf.expected_dtype)).ratio
        for leaf in comparisons
        if leaf.elements and is_inexact(leaf.expected_dtype)
    ]
    return TargetSummary(
        target=target,
        verdict="violations" if failed else ("verified" if observed else "not-reached"),
        violations=violations,
        warnings=_count(findings, "warning"),
        notes=_count(findings, "note"),
        cases=sum(1 for found in observed for case in found.cases if case.outputs),
        elements=sum(leaf.elements for leaf in comparisons),
        worst_ratio=max(ratios, default=None),
    )


def _count(findings: Sequence[Finding], severity: Severity) -> int:
    return sum(finding.severity == severity for finding in findings)
