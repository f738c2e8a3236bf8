"""Assign each recorded failure to one rule, so that none is lost and none is reported twice."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from export_gate.rules.base import Finding
from export_gate.rules.cases import other_cases, planned_targets
from export_gate.rules.wording import paragraph, place
from export_gate.wall.contract import ModelContract, TargetName
from export_gate.wall.observation import Failure, ModelObservation, Stage, TargetObservation

SHAPE_REFUSAL = re.compile(
    r"Guard failed:(?![^\n]*dtype)"
    r"|Expected input at [^\n]* to be (?:<=|>=|==|equal|of the form)"
    r"|\bdim value is too\b|[Uu]nmatched dim value|[Rr]untime check"
    r"|Got invalid dimensions for input"
)
"""What an artifact reports when a size breaks one of its own constraints.

In this order: torch's `program.module()`, the same before torch 2.9, AOTInductor's runtime checks, ONNX Runtime.
"""


RULE_OF_STAGE: dict[Stage, str] = {
    "model": "contract-broken",
    "controls": "contract-broken",
    "eager": "contract-broken",
    "export": "export-failed",
    "convert": "conversion-failed",
    "load": "load-failed",
    "run": "run-failed",
    "compare": "run-failed",
    "guards": "run-failed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """A failure, with the target it belongs to."""

    failure: Failure
    target: TargetName | None = None
    """None if the model ended before its targets."""
    separate: str | None = None
    """The separate export in which it happened, in words."""

    def place(self, model: str) -> str:
        """Where, as the beginning of a message."""
        return place(model, self.target, case=self.failure.case, at=self.separate)


def all_failures(contract: ModelContract, observation: ModelObservation) -> tuple[Located, ...]:
    """The model's own failure, then each planned target's, then those of single cases."""
    own = () if observation.failure is None else (Located(failure=observation.failure),)
    targets = tuple(planned_targets(contract, observation))
    ended = tuple(
        Located(failure=target.failure, target=target.target, separate=separate_words(target))
        for target in targets
        if target.failure is not None
    )
    single = tuple(
        Located(failure=replace(case.failure, case=case.case), target=target.target, separate=separate_words(target))
        for target in targets
        for case in target.cases
        if case.failure is not None
    )
    return own + ended + single


def failures_of(rule: str, contract: ModelContract, observation: ModelObservation) -> tuple[tuple[Located, ...], ...]:
    """This rule's failures, grouped so that each group is one finding; the first of a group is named.

    One export serves every target, so its failures are the model's.
    """
    groups: dict[TargetName | None, list[Located]] = {}
    for located in all_failures(contract, observation):
        if rule_for(located.failure) == rule:
            owner = None if rule == "export-failed" else located.target
            groups.setdefault(owner, []).append(located)
    return tuple(tuple(group) for group in groups.values())


def rule_for(failure: Failure) -> str:
    """The rule that reports the failure: by how it ended, then by its stage."""
    if failure.kind == "died":
        return "worker-died"
    if failure.kind == "timed-out":
        return "timed-out"
    if refuses_size(failure):
        return "range-narrowed"
    return RULE_OF_STAGE[failure.stage]


def refuses_size(failure: Failure) -> bool:
    """Whether an artifact refused an input of the control set, which is in range, for its sizes."""
    return failure.stage == "run" and failure.case is not None and bool(SHAPE_REFUSAL.search(failure.message))


def finding(rule: str, model: str, group: Sequence[Located], message: str, hint: str) -> Finding:
    """The finding of one group of failures, with the traceback of the first folded into the details."""
    first = group[0]
    cases = [located.failure.case for located in group if located.failure.case is not None]
    return Finding(
        rule=rule,
        severity="violation",
        model=model,
        target=None if rule == "export-failed" else first.target,
        case=first.failure.case,
        message=message,
        hint=hint,
        occurrences=len(group),
        source=first.failure.source,
        details=failure_details(first.failure) + other_cases(cases),
    )


def failure_details(failure: Failure) -> tuple[str, ...]:
    """Torch's suggested fixes and the traceback."""
    suggested = tuple(f"torch suggests: {line.strip()}" for line in failure.suggestions)
    return suggested + paragraph(failure.trace)


def separate_words(target: TargetObservation) -> str | None:
    """`separate export at batch=1`, or None for the main export."""
    sizes = ", ".join(f"{dim}={size}" for dim, size in sorted(target.separate.items()))
    return f"separate export at {sizes}" if sizes else None
