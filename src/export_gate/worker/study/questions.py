"""The inputs at which mutants are asked: the control set where it can tell, and random inputs beyond it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from export_gate.worker.controls.build import reference_call
from export_gate.worker.controls.random_cases import random_cases
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.controls.specs import elements_at, tensor_leaves
from export_gate.worker.export.thresholds import thresholds
from export_gate.worker.leaves.bits import digest_of
from export_gate.worker.leaves.values import Call
from export_gate.worker.model.factory import bind
from export_gate.worker.model.reference import Runner
from export_gate.worker.model.thresholds import Threshold
from export_gate.worker.mutants.anatomy import Anatomy, Array
from export_gate.worker.nodes.file import FileGraph, fetch
from export_gate.worker.study.exam import Judge, Question
from export_gate.worker.study.sweeping import CALL_FLOPS
from export_gate.worker.study.verify import Verification
from export_gate.worker.targets.onnx import call_tensors

SEARCHED, LEAST_SEARCHED = 400, 24
"""Random inputs."""
SEARCH_SHARE = 2.0
"""What they may cost at most, in work budgets of the control set."""


def control_questions(work: Verification, judge: Judge, run: Runner) -> tuple[tuple[Question, ...], int]:
    """The control inputs and swept sizes that the artifact passes, and how many it does not: those cannot tell."""
    references = {**work.sweep.references, **work.references}
    kept: list[Question] = []
    asked = [case for case in (*work.cases, *work.sweep.cases) if case.name in references]
    for case in asked:
        call = bind(case.make(), work.parameters)
        with contextlib.suppress(Exception):
            leaves = run(call)
            if not judge.is_wrong(case, references[case.name], leaves, run):
                kept.append(Question(case=case, call=call, own=digest_of(leaves)))
    return tuple(kept), len(asked) - len(kept)


def search_questions(work: Verification, run: Runner, flops: float | None, seed: int) -> Iterator[Question]:
    """Random inputs that the artifact takes, as many as the work budget allows.

    Args:
        work: the target.
        run: runs the artifact.
        flops: operations of one call, at the first control input; None if unknown.
        seed: of sizes and families.
    """
    contract = work.context.contract
    left = SEARCH_SHARE * contract.controls.budget_flops
    first = max(_elements(work, work.cases[0]), 1)
    for turn, case in enumerate(random_cases(contract, _constants(work), seed, SEARCHED)):
        left -= (flops or 0.0) * _elements(work, case) / first + CALL_FLOPS
        if left < 0 and turn >= LEAST_SEARCHED:
            return
        with contextlib.suppress(Exception):  # an input that the artifact or the project's own draw refuses
            call = bind(case.make(), work.parameters)
            yield Question(case=case, call=call, own=digest_of(run(call)))


def sizes_at_reference(
    work: Verification, graph: FileGraph, anatomy: Anatomy, others: Sequence[Question]
) -> Mapping[str, Array]:
    """Values that the file computes from sizes and that differ between inputs, as they are at the reference input."""
    names = sorted(anatomy.sizes())
    reference = reference_call(work.context.contract, work.parameters, work.separate)
    found: dict[str, Array] = {}
    with contextlib.suppress(Exception):  # a file that cannot be looked into has no such mutants
        session = graph.tapped(names, work.target.option("providers", tuple), "disable")
        found = fetch(session, names, _feeds(work, reference))
        elsewhere = [fetch(session, names, _feeds(work, question.call)) for question in _extremes(others)]
        return {name: v for name, v in found.items() if any(not np.array_equal(v, other[name]) for other in elsewhere)}
    return {}


def _extremes(questions: Sequence[Question]) -> list[Question]:
    """The smallest and the largest input, and one in between."""
    ordered = sorted(questions, key=lambda question: sum(question.case.sizes.values()))
    return [ordered[0], ordered[len(ordered) // 2], ordered[-1]] if ordered else []


def _feeds(work: Verification, call: Call) -> dict[str, Any]:
    tensors = zip(work.context.input_names, call_tensors(call), strict=True)
    return {name: tensor.detach().cpu().numpy() for name, tensor in tensors}


def _constants(work: Verification) -> tuple[Threshold, ...]:
    return () if work.context.program is None else thresholds(work.context.program.program)


def _elements(work: Verification, case: ControlCase) -> int:
    return sum(elements_at(spec, case.sizes) for _, spec in tensor_leaves(work.context.contract))
