"""Group findings that have one cause: in several targets, in several outputs, or shown in another way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from export_gate.rules import NAMED
from export_gate.rules.base import SEVERITIES, Finding
from export_gate.rules.follow_ups import (
    COMPARED,
    fails_at_same_guard,
    fails_at_same_operator,
    shows_same_guard,
    shows_same_refusal,
    shows_same_state,
)
from export_gate.rules.wording import listing
from export_gate.wall.diagnosis import Cause
from export_gate.wall.observation import ModelObservation

Group = Sequence[Finding]
SHARED: tuple[Cause, ...] = (
    "export",
    "size-guard",
    "size-arithmetic",
    "conversion",
    "operator",
    "special-value",
)
"""Causes that are one thing in several outputs; rounding, for example, is each output's own."""


def grouped(
    findings: Sequence[Finding], observations: Mapping[str, ModelObservation]
) -> list[tuple[Group, list[Finding]]]:
    """The findings in groups of one cause, worst first, each with those that show the same cause in another way."""
    worst_first = sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))
    # Model by model, as causes are: with thousands of models, to compare each finding with each takes minutes.
    models: dict[str, dict[tuple[str, ...], list[Finding]]] = {}
    for finding in worst_first:
        models.setdefault(finding.model, {}).setdefault(_sameness(finding), []).append(finding)
    found = [pair for own in models.values() for pair in _folded(_joined(list(own.values())), observations)]
    places = {id(finding): place for place, finding in enumerate(worst_first)}
    return sorted(found, key=lambda pair: min(places[id(finding)] for finding in (*pair[0], *pair[1])))


def instead(hidden: Sequence[Finding]) -> str:
    """`exported-program and pt2 refuse such sizes instead (range-narrowed)`."""
    if hidden and hidden[0].rule == "export-failed":
        return "torch.export stops at the same line (export-failed)"
    targets = list(dict.fromkeys(finding.target for finding in hidden if finding.target))
    if not targets:
        return ""
    is_one = len(targets) == 1
    if hidden[0].rule == "range-narrowed":
        verb = "refuses such sizes instead" if is_one else "refuse such sizes instead"
    elif hidden[0].rule == "run-failed":
        verb = "fails at such sizes" if is_one else "fail at such sizes"
    else:
        verb = "differs from eager because of it" if is_one else "differ from eager because of it"
    return f"{listing(targets)} {verb} ({hidden[0].rule})"


def _sameness(finding: Finding) -> tuple[str, ...]:
    """A key that is equal for findings that differ only in their target: by output, or else by text."""
    about = finding.output or finding.message.replace(finding.target or "", "")
    rule = NAMED.get(finding.rule)
    # Targets that died or timed out did so each in its own way; their text alone does not make them one finding.
    is_ending = rule is not None and rule.stage is None
    own = "" if finding.target and not is_ending else str(finding.target)
    waiver = f"{finding.waiver.until} {finding.waiver.reason}" if finding.waiver else ""
    return (finding.severity, waiver, finding.model, finding.rule, finding.cause, about, own)


def _joined(groups: Sequence[Group]) -> list[Group]:
    """Groups of several outputs that have one cause, as one."""
    left = list(groups)
    found: list[Group] = []
    while left:
        head, *rest = left
        alike = [group for group in rest if _has_same_cause(head, group)]
        found.append([*head, *(finding for group in alike for finding in group)])
        left = [group for group in rest if group not in alike]
    return found


def _has_same_cause(one: Group, other: Group) -> bool:
    """Whether both are about one line, or one node's operator, in the same targets."""
    first, second = one[0], other[0]
    is_shared = first.rule in ("state-carried", "nondeterministic-model") or (
        first.rule in COMPARED and first.cause in SHARED
    )
    return is_shared and None not in (first.output, second.output) and _signature(one) == _signature(other)


def _signature(group: Group) -> tuple[object, ...]:
    first = group[0]
    guilty = first.trace.guilty if first.trace else None
    return (
        (first.model, first.severity, first.waiver, first.rule, first.owner, first.cause, first.source),
        guilty.operator if guilty else "",
        # Lines to paste have the node's own arguments in them.
        "" if first.recipe else first.hint,
        {finding.target for finding in group},
    )


def _folded(groups: Sequence[Group], observations: Mapping[str, ModelObservation]) -> list[tuple[Group, list[Finding]]]:
    """Each group with the groups that show the same cause in another way, at the place of the first of them."""
    left, found = list(groups), []
    while left:
        seen = observations.get(left[0][0].model)
        # A result that is silently wrong is worse than a refusal, so it leads, whichever comes first.
        head = next((group for group in left if seen and shows_same_guard(group[0], left[0][0], seen)), left[0])
        hidden = [group for group in left if seen and any(_shows_same(root, group[0], seen) for root in head)]
        found.append((head, [finding for group in hidden for finding in group]))
        left = [group for group in left if group is not head and group not in hidden]
    return found


def _shows_same(root: Finding, other: Finding, seen: ModelObservation) -> bool:
    of_sizes = shows_same_guard(root, other, seen) or fails_at_same_guard(root, other, seen)
    return (
        of_sizes
        or fails_at_same_operator(root, other)
        or shows_same_state(root, other)
        or shows_same_refusal(root, other)
    )
