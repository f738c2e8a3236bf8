"""Fold the findings that a root cause explains into it: once it is fixed, they change or disappear."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from export_gate.rules.base import Finding
from export_gate.rules.cases import branch_at
from export_gate.rules.causes import OPERATOR_OWNERS
from export_gate.rules.contract_broken import NESTED_HINT
from export_gate.rules.failures import refuses_size
from export_gate.wall.observation import CaseResult, ModelObservation, TargetObservation
from export_gate.wall.words import count

COMPARED = ("shape-mismatch", "nonfinite-mismatch", "value-mismatch", "tolerance-vacuous", "guard-missing")
"""Rules that compare what a model returns, which means nothing where it is not what ships."""
OF_RANDOMNESS = ("state-carried", "golden-mismatch", *COMPARED)
ALSO_DRAWING = ("attention", "dropout", "rnn", "lstm", "gru")
"""Operators that compute something besides, which stays when they no longer draw."""
OF_TRAIN_MODE = ("nondeterministic-model", *OF_RANDOMNESS)


def voids_comparisons(finding: Finding) -> bool:
    """Whether eager itself is not what ships, so that agreement with it means as little as a difference."""
    if finding.severity != "violation" or finding.waiver is not None:
        return False
    # Train mode changes results only if some module behaves differently in it, which the details list.
    return finding.rule == "nondeterministic-model" or (finding.rule == "train-mode" and bool(finding.details))


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """A finding that explains others."""

    finding: Finding
    explains: Callable[[Finding], bool]


def without_follow_ups(findings: Sequence[Finding], observation: ModelObservation) -> list[Finding]:
    """The findings of one model without those that a violation among them explains, which counts them."""
    left, roots = list(findings), tuple(_roots(findings, observation))
    # Each once, in the order of the roots, some of which explain others.
    for root in {id(each.finding): each.finding for each in roots}.values():
        # Another root has explained it already.
        if root not in left:
            continue
        own = [each.explains for each in roots if each.finding is root]
        folded = [f for f in left if f is not root and any(explains(f) for explains in own)]
        left = [_counting(f, folded) if f is root else f for f in left if f not in folded]
    return left


def _roots(findings: Sequence[Finding], observation: ModelObservation) -> Iterator[Root]:
    violations = [finding for finding in findings if finding.severity == "violation"]
    # Train mode explains differences only if some module acts differently in it.
    acts = bool(observation.hygiene.train_modules)
    # Some inputs are refused in train mode alone.
    refusing = ("contract-broken",) if all(promise.of_training for promise in observation.broken) else ()
    of_training = (*OF_TRAIN_MODE, *refusing) if acts else ()
    for rule, explained in (("train-mode", of_training), ("nondeterministic-model", OF_RANDOMNESS)):
        for finding in [each for each in violations if each.rule == rule][:1]:
            yield Root(finding=finding, explains=lambda other, names=explained: other.rule in names)  # type: ignore[misc] # bound per turn
    for finding in [each for each in violations if each.rule in ("nondeterministic-model", "state-carried")]:
        yield Root(finding=finding, explains=lambda other, own=finding: _is_noise_of(own, other))  # type: ignore[misc] # likewise
    drawing = _targets_that_only_draw(observation)
    for finding in [each for each in violations if each.rule == "nondeterministic-model"][:1]:
        yield Root(finding=finding, explains=lambda other: (other.rule, other.target) in drawing)
    for finding in [each for each in violations if each.cause == "weights"]:
        yield Root(finding=finding, explains=lambda other, own=finding: _has_same_weights(own, other))  # type: ignore[misc] # likewise
    # Eager takes another way than any program there, whatever the output.
    for finding in [each for each in violations if each.rule == "contract-broken" and each.hint == NESTED_HINT]:
        yield Root(finding=finding, explains=lambda other: other.rule in COMPARED)
    for finding in [each for each in violations if (each.rule, each.cause) == ("nothing-compared", "rounding")]:
        yield Root(finding=finding, explains=lambda other, own=finding: _is_same_noise(own, other))  # type: ignore[misc] # likewise


def _targets_that_only_draw(observation: ModelObservation) -> set[tuple[str, str]]:
    """The targets whose converter stopped at an operator that does nothing but draw, and goes with the chance."""
    return {
        ("conversion-failed", seen.target)
        for seen in observation.targets
        if seen.stopped_at is not None
        and seen.stopped_at.operator in observation.random_operators
        and not any(name in seen.stopped_at.operator for name in ALSO_DRAWING)
    }


def _has_same_weights(root: Finding, other: Finding) -> bool:
    """Whether the other finding is about the same file, which was made from other weights."""
    rules = (*COMPARED, "table-unread")
    return other.target == root.target and other.rule in rules and other.severity in (root.severity, "warning")


def _is_noise_of(root: Finding, other: Finding) -> bool:
    """Whether float32 seems too inexact for an output only because eager's answers to one input differ."""
    is_noise = other.rule == "ill-conditioned" or (other.rule, other.cause) == ("nothing-compared", "rounding")
    return is_noise and other.output == root.output


def _is_same_noise(root: Finding, other: Finding) -> bool:
    """Whether the other finding says of one input what the root says of the output."""
    return (other.rule, other.target, other.output) == ("ill-conditioned", root.target, root.output)


def shows_same_guard(root: Finding, other: Finding, observation: ModelObservation) -> bool:
    """Whether a program refuses the sizes at which a file, which refuses none, silently computes something else.

    Both stay findings, each of its own target; a report shows them as one.
    """
    is_wrong = root.severity == "violation" and root.rule in COMPARED and root.rule != "guard-missing"
    if not is_wrong or (root.cause, other.cause, other.rule) != ("size-guard", "size-guard", "range-narrowed"):
        return False
    if (root.model, root.severity, root.waiver) != (other.model, other.severity, other.waiver):
        return False
    branch = branch_at(observation, root.case)
    refused = {case.case for seen in observation.targets if seen.target == other.target for case in _refused(seen)}
    return root.case in refused or (branch is not None and branch == branch_at(observation, other.case))


def fails_at_same_guard(root: Finding, other: Finding, observation: ModelObservation) -> bool:
    """Whether a file fails at the sizes that a program refuses: neither has the branch that the model takes there."""
    if (root.rule, root.cause, other.rule) != ("range-narrowed", "size-guard", "run-failed"):
        return False
    branch = branch_at(observation, root.case)
    is_alike = (root.model, root.severity, root.waiver) == (other.model, other.severity, other.waiver)
    return is_alike and branch is not None and branch == branch_at(observation, other.case)


def fails_at_same_operator(root: Finding, other: Finding) -> bool:
    """Whether an operator with a known replacement fails at some inputs and gives other results at others."""
    if (root.rule, root.target) != ("run-failed", other.target) or other.rule not in COMPARED or not root.recipe:
        return False
    sides = [(each.model, each.owner, each.severity, each.waiver) for each in (root, other)]
    return root.owner in OPERATOR_OWNERS and sides[0] == sides[1]


def shows_same_state(root: Finding, other: Finding) -> bool:
    """Whether an output differs from eager because eager's own result depends on earlier calls."""
    if (root.rule, other.cause) != ("state-carried", "state") or other.rule not in COMPARED:
        return False
    sides = [(each.model, each.output, each.severity, each.waiver) for each in (root, other)]
    return sides[0] == sides[1]


def shows_same_refusal(root: Finding, other: Finding) -> bool:
    """Whether torch.export stops at the very line at which eager refuses inputs: tracing meets the same sizes."""
    if (root.rule, root.cause, other.rule) != ("contract-broken", "eager", "export-failed"):
        return False
    is_alike = (root.model, root.severity, root.waiver) == (other.model, other.severity, other.waiver)
    return is_alike and root.source is not None and root.source == other.source


def _refused(seen: TargetObservation) -> Iterator[CaseResult]:
    return (case for case in seen.cases if case.failure is not None and refuses_size(case.failure))


def _counting(root: Finding, folded: Sequence[Finding]) -> Finding:
    if not folded:
        return root
    rules = {rule: [f for f in folded if f.rule == rule] for rule in dict.fromkeys(f.rule for f in folded)}
    named = "; ".join(f"{rule} ({_targets(found)})" for rule, found in rules.items())
    line = f"explains {count(len(folded), 'further finding')}, not listed: {named}"
    return replace(root, follow_ups=len(folded), details=(line, *root.details))


def _targets(found: Sequence[Finding]) -> str:
    return ", ".join(dict.fromkeys(finding.target or "eager" for finding in found))
