"""Make calls at the edge of the contract and outside it, and compare an artifact's answers with eager's.

Source: docs/targets.md; an exported program does not enforce a lower bound of 2, say.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal

from export_gate.wall.observation import CaseResult, Comparison, Probe
from export_gate.wall.words import rounded
from export_gate.worker.leaves.compare import compare_case
from export_gate.worker.leaves.values import Leaf, PackedLeaf, pack, unpack
from export_gate.worker.model.reference import Reference, Runner
from export_gate.worker.model.reference_file import ReferenceFile
from export_gate.worker.process.failures import describe
from export_gate.worker.process.isolated import Isolated
from export_gate.worker.study.probes import PlannedProbe

Verdict = Literal["refused", "accepted-equal", "accepted-differs", "accepted-eager-refuses"]

Unmasked = Callable[[PlannedProbe], CaseResult | None]
"""Compares an artifact with eager at a probe with nothing masked; None if nothing was."""

MESSAGE_LENGTH = 200
NOTHING = Reference.held("", ())
LIMIT_S = 60.0
"""Limit of one call outside the contract."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A program's answer to a probe."""

    probe: PlannedProbe
    reference: Reference = NOTHING
    refusal: str | None = None
    """First line of the exception; None if it accepts."""


@contextmanager
def eager_asked(
    probes: Sequence[PlannedProbe], eager: Runner, file: ReferenceFile, limit_s: float = LIMIT_S
) -> Iterator[Callable[[Mapping[str, Reference]], tuple[Answer, ...]]]:
    """Start asking eager, once for all targets; yields a function that waits for the answers.

    In a forked copy of this process as it is now, as the artifacts are asked: eager, too, may crash or hang outside
    its contract. What control inputs answer is taken from their references, and asked where there is none.
    """
    tried = [probe for probe in probes if not probe.left_out]

    def call(probe: PlannedProbe) -> Packed:
        answer = _ask(probe, eager)
        return Packed(leaves=tuple(pack(leaf) for leaf in answer.reference.leaves), refusal=answer.refusal)

    def died(_: PlannedProbe, ending: str) -> Packed:
        return Packed(refusal=f"the process died: {ending}")

    isolated = Isolated(kind=Packed, call=call, died=died, limit_s=limit_s)
    with isolated.begun([probe for probe in tried if not probe.case]) as records:

        def answers(references: Mapping[str, Reference]) -> tuple[Answer, ...]:
            said = records()
            # Both in the order of `tried`, so that `next` below gives each probe its own answer.
            further = iter(isolated.each([p for p in tried if p.case and p.case not in references]))
            return tuple(
                Answer(probe=probe, reference=references[probe.case])
                if probe.case in references
                else _unpacked(probe, next(further if probe.case else said), file)
                for probe in tried
            )

        yield answers


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """An answer in a form that JSON can store."""

    leaves: tuple[PackedLeaf, ...] = ()
    refusal: str | None = None


def _unpacked(probe: PlannedProbe, packed: Packed, file: ReferenceFile) -> Answer:
    leaves = tuple(unpack(leaf) for leaf in packed.leaves)
    return Answer(probe=probe, reference=file.reference(probe.axis, leaves), refusal=packed.refusal)


def _never(_: PlannedProbe) -> CaseResult | None:
    return None


def run_probes(
    answers: Sequence[Answer],
    artifact: Runner,
    is_equal: Callable[[CaseResult], bool],
    checks: Literal["default", "runtime-checks"] = "default",
    *,
    limit_s: float = LIMIT_S,
    unmasked: Unmasked = _never,
) -> tuple[Probe, ...]:
    """Try all the probes on an artifact; see `probes_begun`."""
    with probes_begun(answers, artifact, is_equal, checks, limit_s=limit_s, unmasked=unmasked) as probes:
        return probes({})


@contextmanager
def probes_begun(
    answers: Sequence[Answer],
    artifact: Runner,
    is_equal: Callable[[CaseResult], bool],
    checks: Literal["default", "runtime-checks"] = "default",
    *,
    limit_s: float = LIMIT_S,
    known: Collection[str] = (),
    unmasked: Unmasked = _never,
) -> Iterator[Callable[[Mapping[str, CaseResult]], tuple[Probe, ...]]]:
    """Begin to try the probes on an artifact; yields what takes the results of control inputs and waits for the probes.

    In a forked copy of this process as it is now: input outside the contract can kill it.

    Args:
        answers: Eager's, from `eager_asked`.
        artifact: Runs the artifact; any exception is a refusal.
        is_equal: Whether a comparison with eager's outputs passes; loose, as wrong guards give wrong results, not
            inexact ones.
        checks: Whether AOTInductor's own checks are on.
        limit_s: Bound on each call, in seconds.
        known: Control inputs whose results there will be, which answer the probes that have their sizes.
        unmasked: Compares both once more where they differ, with nothing masked: what an artifact returns at masked
            places says nothing about sizes.
    """

    def call(eager: Answer) -> Probe:
        answer = _ask(eager.probe, artifact)
        verdict = _verdict(eager, answer, is_equal)
        # Only then, because it is a call of each side more.
        if verdict[0] == "accepted-differs" and (again := unmasked(eager.probe)) is not None:
            verdict = _verdict_of(again, is_equal)
        probe = _probe(eager, checks, *verdict)
        return replace(probe, empty=answer.refusal is None and _are_empty(answer.reference.leaves))

    def died(eager: Answer, ending: str) -> Probe:
        # A crash refuses too: no wrong value came back.
        return _probe(eager, checks, "refused", f"the process died: {ending}")

    asked = [eager for eager in answers if eager.probe.case not in known]
    with Isolated(kind=Probe, call=call, died=died, limit_s=limit_s).begun(asked) as records:

        def probes(results: Mapping[str, CaseResult]) -> tuple[Probe, ...]:
            said = records()
            return tuple(
                _probe(eager, checks, *_verdict_of(results[eager.probe.case], is_equal))
                if eager.probe.case in known
                else next(said)
                for eager in answers
            )

        yield probes


def _ask(probe: PlannedProbe, run: Runner) -> Answer:
    try:
        return Answer(probe=probe, reference=Reference.held(probe.axis, run(probe.call())))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever is raised refuses the call
        return Answer(probe=probe, refusal=first_line(error))


def _are_empty(leaves: Sequence[Leaf]) -> bool:
    sizes = [leaf.value.size for leaf in leaves if leaf.value is not None]
    return bool(sizes) and not any(sizes)


def _probe(eager: Answer, checks: Literal["default", "runtime-checks"], answer: Verdict, message: str) -> Probe:
    probe = eager.probe
    return Probe(
        kind=probe.kind,
        axis=probe.axis,
        declared=probe.declared,
        tried=probe.tried,
        answer=answer,
        message=message,
        checks=checks,
        eager_refuses=eager.refusal is not None,
    )


def _verdict(eager: Answer, artifact: Answer, is_equal: Callable[[CaseResult], bool]) -> tuple[Verdict, str]:
    if artifact.refusal is not None:
        return "refused", artifact.refusal
    if eager.refusal is not None:
        return "accepted-eager-refuses", f"eager refuses: {eager.refusal}"
    result = compare_case(f"{eager.probe.kind} {eager.probe.axis}", eager.reference.leaves, artifact.reference.leaves)
    return _verdict_of(result, is_equal)


def _verdict_of(result: CaseResult, is_equal: Callable[[CaseResult], bool]) -> tuple[Verdict, str]:
    if result.failure is not None:
        return "refused", _shortened(result.failure.message, result.failure.type)
    return ("accepted-equal", "") if is_equal(result) else ("accepted-differs", difference(result))


def first_line(error: BaseException) -> str:
    """The first line of an exception's text, or its class if there is no text.

    ONNX Runtime and others end it with a colon or the like and name the sizes on the second, which then belongs to it.
    """
    return _shortened(describe(error), type(error).__name__)


def _shortened(message: str, kind: str) -> str:
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    text = lines[0] if lines else kind
    if len(lines) > 1 and text.endswith((":", "following indices")):
        text = f"{text} {lines[1]}"
    return text if len(text) <= MESSAGE_LENGTH else f"{text[: MESSAGE_LENGTH - 3]}..."


def difference(result: CaseResult) -> str:
    """How an artifact's answer differs from eager's, by its worst output."""
    if result.structure is not None:
        actual, expected = (
            ", ".join(names) or "nothing" for names in (result.structure.actual, result.structure.expected)
        )
        return f"returned {actual}; eager returns {expected}"
    if not result.outputs:
        return "no output to compare"
    worst = max(result.outputs, key=_severity)
    place = f"output '{worst.output}': "
    if _is_other_type(worst):
        actual = f"{worst.actual_dtype}{list(worst.actual_shape)}"
        return f"{place}{actual}; eager returns {worst.expected_dtype}{list(worst.expected_shape)}"
    if worst.nonfinite_mismatched:
        return (
            f"{place}NaN or infinity at {worst.nonfinite_mismatched} of {worst.elements} elements where eager differs"
        )
    return f"{place}max |P-M| {rounded(worst.max_abs_diff)} where max |M| is {rounded(worst.expected_max_abs)}"


def _severity(comparison: Comparison) -> tuple[bool, bool, float]:
    relative = comparison.max_abs_diff / (comparison.expected_max_abs or 1.0)
    return _is_other_type(comparison), comparison.nonfinite_mismatched > 0, relative


def _is_other_type(comparison: Comparison) -> bool:
    return (comparison.expected_dtype, comparison.expected_shape) != (comparison.actual_dtype, comparison.actual_shape)
