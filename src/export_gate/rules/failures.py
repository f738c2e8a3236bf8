"""Assign each recorded failure to one rule, so that none is lost and none is reported twice."""

from __future__ import annotations

import re
from collections.abc import Sequence

from export_gate.rules.base import Finding
from export_gate.rules.blame import blame_failure
from export_gate.rules.cases import other_cases
from export_gate.rules.measure import Failed, Measured
from export_gate.rules.wording import paragraph, source_place
from export_gate.wall.contract import ModelContract, TargetName
from export_gate.wall.observation import Failure, Stage

SHAPE_REFUSAL = re.compile(
    r"Guard failed:(?![^\n]*dtype)"
    r"|Expected input at [^\n]* to be (?:<=|>=|==|equal|of the form)"
    r"|\bdim value is too\b|[Uu]nmatched dim value|[Rr]untime check"
    r"|Got invalid dimensions for input"
)
"""What an artifact reports when a size breaks one of its own constraints.

In this order: torch's `program.module()`, the same before torch 2.9, AOTInductor's runtime checks, ONNX Runtime.
"""


SUGGESTS = "torch suggests: "
SUGGESTED = re.compile(r"\s+\w+ = ")
"""A line below torch's `Suggested fixes:`."""

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


def failures_of(rule: str, measured: Measured) -> tuple[tuple[Failed, ...], ...]:
    """This rule's failures, grouped so that each group is one finding; the first of a group is named.

    One export serves every target, so its failures are the model's.
    """
    groups: dict[TargetName | None, list[Failed]] = {}
    for failed in measured.failed:
        if rule_for(failed.failure) == rule:
            owner = None if rule == "export-failed" else failed.target
            groups.setdefault(owner, []).append(failed)
    return tuple(tuple(group) for group in groups.values())


def rule_for(failure: Failure) -> str:
    """The rule that reports the failure: by how it ended, then by its stage."""
    # How it ended comes before where: a crash in stage `run` is not a refusal by the artifact.
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


def finding(rule: str, contract: ModelContract, group: Sequence[Failed], message: str, hint: str) -> Finding:
    """The finding of one group of failures, with the traceback of the first folded into the details."""
    first = group[0]
    cases = [failed.case for failed in group if failed.case is not None]
    blame = blame_failure(first.failure, contract, first.target)
    return Finding(
        rule=rule,
        severity="violation",
        model=contract.name,
        owner=blame.owner,
        cause=blame.cause,
        target=None if rule == "export-failed" else first.target,
        case=first.failure.case,
        message=message,
        hint=hint,
        occurrences=len(group),
        source=first.failure.source,
        details=failure_details(first.failure) + other_cases(cases),
    )


def inputs_run(measured: Measured, group: Sequence[Failed]) -> int:
    """Inputs that were run on the target of these failures, with those at which it failed."""
    compared = measured.of(group[0].target) if group[0].target else ()
    return len({leaf.case for leaf in compared} | {failed.case for failed in group})


def without_suggestions(details: Sequence[str]) -> tuple[str, ...]:
    """The details without torch's suggested fixes, in lines of ours or in torch's own message."""
    kept, is_suggestion = [], False
    for line in details:
        is_suggestion = line.strip() == "Suggested fixes:" or (is_suggestion and bool(SUGGESTED.match(line)))
        if not is_suggestion and not line.startswith(SUGGESTS):
            kept.append(line)
    return tuple(kept)


def failure_details(failure: Failure) -> tuple[str, ...]:
    """Torch's suggested fixes, the exceptions that led to this one, and the traceback."""
    suggested = tuple(f"{SUGGESTS}{line.strip()}" for line in failure.suggestions)
    foreign = () if failure.foreign is None else (f"in another package: {source_place(failure.foreign)}",)
    return (*suggested, *foreign, *(f"caused by: {cause}" for cause in failure.causes), *paragraph(failure.trace))
