"""Build the status ladder of each target of one model, with the error closest to its bound."""

from __future__ import annotations

import math
from collections.abc import Sequence

from export_gate.report.record import LADDER, Cell, Ladder, State, Step, Worst
from export_gate.rules.base import Finding
from export_gate.wall.contract import ModelContract, Target
from export_gate.wall.equivalence import worst_norm
from export_gate.wall.observation import STAGES, ModelObservation, Stage, TargetObservation
from export_gate.wall.tolerance import resolve_tolerance

STAGE_OF_RULE: dict[str, Stage] = {
    "torchscript-model": "eager",
    "train-mode": "eager",
    "contract-broken": "eager",
    "nondeterministic-model": "eager",
    "input-mutated": "eager",
    "state-carried": "eager",
    "golden-mismatch": "eager",
    "range-undeclared": "eager",
    "export-failed": "export",
    "dim-specialized": "export",
    "conversion-failed": "convert",
    "load-failed": "load",
    "run-failed": "run",
    "nothing-compared": "compare",
    "structure-mismatch": "compare",
    "dtype-mismatch": "compare",
    "shape-mismatch": "compare",
    "nonfinite-mismatch": "compare",
    "value-mismatch": "compare",
    "range-narrowed": "guards",
    "guard-missing": "guards",
    "interface-changed": "export",
    "margin-shrunk": "compare",
    "artifact-grew": "convert",
    "waiver-unused": "compare",
}
"""The rung at which a rule's finding shows."""
ENDINGS = ("worker-died", "timed-out")
"""Rules that can strike at any stage: the observation says at which."""


def cells(contract: ModelContract, observation: ModelObservation, findings: Sequence[Finding]) -> tuple[Cell, ...]:
    """One cell for each declared target, in the contract's order."""
    return tuple(_cell(contract, planned, observation, findings) for planned in contract.targets)


def _cell(contract: ModelContract, planned: Target, observation: ModelObservation, findings: Sequence[Finding]) -> Cell:
    mine = [finding for finding in findings if finding.target in (None, planned.name)]
    seen = sorted((t for t in observation.targets if t.target == planned.name), key=lambda t: len(t.separate))
    unseen = TargetObservation(target=planned.name, guards=planned.guards, reached=observation.reached)
    ladders = tuple(
        _ladder(contract, planned, observation, target, [f for f in mine if _about(f, target, seen)])
        for target in seen or [unseen]
    )
    states = [ladder.state for ladder in ladders]
    state = next(state for state in ("failed", "skipped", "waived", "warned", "ok") if state in states)
    decisive = _decisive(mine, state)
    worst = _worst([ladder.worst for ladder in ladders])
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


def _cell_ratio(decisive: Finding | None, worst: Worst | None) -> float | None:
    """A number only where it says why: the margin beside a NaN or a crash would read as good news."""
    is_broken = decisive is not None and (decisive.severity == "violation" or decisive.waiver is not None)
    if decisive is not None and is_broken and decisive.rule != "value-mismatch":
        return None
    return worst.ratio if worst is not None and math.isfinite(worst.ratio) else None


def _ladder(
    contract: ModelContract,
    planned: Target,
    observation: ModelObservation,
    target: TargetObservation,
    findings: Sequence[Finding],
) -> Ladder:
    compared = sum(1 for case in target.cases if case.outputs)
    steps = _steps(planned, observation, target, findings)
    return Ladder(
        target=target.target,
        label=" at ".join(filter(None, (target.target, _sizes(target.separate)))),
        steps=steps,
        worst=_worst(_worst_of_each(contract, target)),
        compared=compared,
        affine=observation.affine and target.affine and Step(stage="compare", state="ok") in steps,
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

    def state(stage: Stage) -> State:
        if stage in failed:
            return "failed"
        if stage in absent:
            return "not-applicable"
        if STAGES.index(stage) > STAGES.index(end):
            return "skipped"
        if stage == "compare" and not any(case.outputs for case in target.cases):
            return "skipped"
        if stage in waived:
            return "waived"
        return "warned" if stage in warned else "ok"

    return tuple(Step(stage=stage, state=state(stage)) for stage in LADDER)


def _about(finding: Finding, target: TargetObservation, seen: Sequence[TargetObservation]) -> bool:
    """Whether the finding is about this export: its case tells a separate export from the main one, if any has it."""
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
    """Where something ended early, in the words of the ladder."""
    failures = (observation.failure, target.failure)
    return {_on_ladder(failure.stage) for failure in failures if failure is not None}


def _stage(finding: Finding, end: Stage) -> Stage:
    return _on_ladder(end if finding.rule in ENDINGS else STAGE_OF_RULE.get(finding.rule, "eager"))


def _on_ladder(stage: Stage) -> Stage:
    return stage if stage in LADDER else "eager"


def _absent(planned: Target, target: TargetObservation) -> set[Stage]:
    """Rungs that this target does not have."""
    absent: set[Stage] = {"guards"} if target.guards == "ignore" else set()
    if planned.name == "exported-program":
        return absent | {"convert", "load"}
    return absent | {"export", "convert"} if planned.artifact else absent


def _worst_of_each(contract: ModelContract, target: TargetObservation) -> list[Worst]:
    found = []
    for case in target.cases:
        for comparison in case.outputs:
            if comparison.expected_dtype != comparison.actual_dtype:
                continue  # the numbers of such a comparison are zero, which is not agreement
            if comparison.expected_shape != comparison.actual_shape:
                continue
            norm = worst_norm(comparison, resolve_tolerance(contract, target.target, comparison.expected_dtype))
            found.append(
                Worst(
                    measured=norm.measured,
                    allowed=norm.allowed,
                    ratio=norm.ratio,
                    output=comparison.output,
                    case=case.case,
                )
            )
    return found


def _worst(candidates: Sequence[Worst | None]) -> Worst | None:
    return max((w for w in candidates if w is not None), key=lambda worst: worst.ratio, default=None)


def _sizes(sizes: dict[str, int]) -> str:
    return ", ".join(f"{dim}={size}" for dim, size in sorted(sizes.items()))
