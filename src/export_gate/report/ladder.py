"""Build the status ladder of each target of one model, with the error closest to its bound."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from export_gate.report.record import LADDER, Cell, Ladder, State, Step
from export_gate.rules import NAMED
from export_gate.rules.base import Finding
from export_gate.rules.follow_ups import voids_comparisons
from export_gate.rules.measure import Measured, Measurement
from export_gate.wall.contract import Target
from export_gate.wall.observation import STAGES, ModelObservation, Stage, TargetObservation
from export_gate.wall.targets import kind_named


def cells(measured: Measured, findings: Sequence[Finding]) -> tuple[Cell, ...]:
    """One cell for each declared target, in the contract's order."""
    return tuple(_cell(planned, measured, findings) for planned in measured.contract.targets)


def _cell(planned: Target, measured: Measured, findings: Sequence[Finding]) -> Cell:
    mine = [finding for finding in findings if finding.target in (None, planned.name)]
    seen = measured.seen(planned.name)
    unseen = TargetObservation(target=planned.name, guards=planned.guards, reached=measured.observation.reached)
    ladders = tuple(
        _ladder(planned, measured, target, [f for f in mine if _about(f, target, seen)]) for target in seen or [unseen]
    )
    states = [ladder.state for ladder in ladders]
    # The worst of its exports; one that was never reached outweighs a waiver.
    state = next(state for state in ("failed", "skipped", "waived", "warned", "ok") if state in states)
    decisive = _decisive(mine, state)
    worst = _worst(leaf for leaf in measured.of(planned.name) if _can_fail(leaf))
    return Cell(
        target=planned.name,
        state=state,
        reason=decisive.rule if decisive else "",
        ratio=_cell_ratio(decisive, worst),
        ladders=ladders,
    )


def _decisive(findings: Sequence[Finding], state: State) -> Finding | None:
    """The finding that a cell names as its reason: the judge's first, since what follows may be its effect."""
    if state == "waived":
        return next((finding for finding in findings if finding.waiver), None)
    severity = {"failed": "violation", "warned": "warning"}.get(state)
    return next((finding for finding in findings if finding.severity == severity), None)


def _cell_ratio(decisive: Finding | None, worst: Measurement | None) -> float | None:
    """The ratio to show, if it explains the state: a margin beside a NaN or a crash would read as good news."""
    is_broken = decisive is not None and (decisive.severity == "violation" or decisive.waiver is not None)
    if decisive is not None and is_broken and decisive.rule != "value-mismatch":
        return None
    return _ratio(worst) if worst is not None and math.isfinite(_ratio(worst)) else None


def _ladder(planned: Target, measured: Measured, target: TargetObservation, findings: Sequence[Finding]) -> Ladder:
    compared = sum(1 for case in target.cases if case.outputs)
    steps = _steps(planned, measured.observation, target, findings)
    leaves = (leaf for leaf in measured.of(target.target) if leaf.export == target.export)
    compare = next(step.state for step in steps if step.stage == "compare")
    worst = None if compare == "moot" else _worst(leaves)
    # Beside a comparison that failed for another reason than numbers, numbers that are fine read as good news.
    is_beside = compare == "failed" and worst is not None and _ratio(worst) <= 1
    return Ladder(
        target=target.target,
        label=" at ".join(filter(None, (target.target, target.export))),
        steps=steps,
        worst=None if is_beside else worst,
        compared=compared,
        # The basis proves something only if program and artifact are both affine, and agree on it.
        affine=measured.observation.affine and target.affine and Step(stage="compare", state="ok") in steps,
        facts=target.facts,
        notes=target.notes,
    )


def _steps(
    planned: Target, observation: ModelObservation, target: TargetObservation, findings: Sequence[Finding]
) -> tuple[Step, ...]:
    end = _end(observation, target)
    failed = {_stage(f, end) for f in findings if f.severity == "violation"} | _failures(observation, target)
    waived = {_stage(f, end) for f in findings if f.waiver}
    warned = {_stage(f, end) for f in findings if f.severity == "warning"}
    absent = _absent(planned, target)
    moot = ("compare", "guards") if any(map(voids_comparisons, findings)) else ()

    def state(stage: Stage) -> State:
        if stage in failed:
            return "failed"
        if stage in absent:
            return "not-applicable"
        if STAGES.index(stage) > STAGES.index(end):
            return "skipped"
        # The stage was begun, but zero comparisons are never a pass.
        if stage == "compare" and not any(case.outputs for case in target.cases):
            return "skipped"
        if stage in waived:
            return "waived"
        if stage in moot:
            return "moot"
        return "warned" if stage in warned else "ok"

    return tuple(Step(stage=stage, state=state(stage)) for stage in LADDER)


def _about(finding: Finding, target: TargetObservation, seen: Sequence[TargetObservation]) -> bool:
    """Whether the finding is about this export: its case identifies the separate or the main export."""
    having = [other for other in seen if finding.case in _cases(other)]
    return target in having or not having


def _cases(target: TargetObservation) -> set[str | None]:
    return {case.case for case in target.cases} | ({target.failure.case} if target.failure else set())


def _end(observation: ModelObservation, target: TargetObservation) -> Stage:
    """The last stage begun, for this target."""
    if target.failure is not None:
        return target.failure.stage
    if observation.failure is not None and not target.cases:
        return observation.failure.stage
    return target.reached


def _failures(observation: ModelObservation, target: TargetObservation) -> set[Stage]:
    """The rungs of the ladder at which something ended early."""
    failures = (observation.failure, target.failure)
    return {_on_ladder(failure.stage) for failure in failures if failure is not None}


def _stage(finding: Finding, end: Stage) -> Stage:
    rule = NAMED.get(finding.rule)
    return _on_ladder((rule.stage or end) if rule else "eager")


def _on_ladder(stage: Stage) -> Stage:
    return stage if stage in LADDER else "eager"


def _absent(planned: Target, target: TargetObservation) -> set[Stage]:
    """Rungs that this target does not have."""
    absent: set[Stage] = {"guards"} if target.guards == "ignore" else set()
    if not kind_named(planned.kind).has_file:
        return absent | {"convert", "load"}
    return absent | {"export", "convert"} if planned.artifact else absent


def _worst(leaves: Iterable[Measurement | None]) -> Measurement | None:
    """The one closest to its bound, or furthest over it; None if there are no numbers."""
    return max((leaf for leaf in leaves if leaf and leaf.norm), key=_ratio, default=None)


def _can_fail(leaf: Measurement) -> bool:
    """Whether the share of the bound says something: not where an output of zeros would stay within it as well."""
    norm = leaf.norm
    return norm is not None and (norm.measured == 0 or norm.ratio > 1 or norm.allowed < norm.scale)


def _ratio(leaf: Measurement) -> float:
    return leaf.norm.ratio if leaf.norm else math.inf
