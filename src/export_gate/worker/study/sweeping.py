"""A sweep of sizes: eager's answers within a budget of work, and an artifact's, of which only differences are kept."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from export_gate.wall.contract import ModelContract
from export_gate.wall.observation import CaseResult, Comparison
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.controls.specs import total_elements
from export_gate.worker.controls.sweep import sweep_cases
from export_gate.worker.leaves.values import Leaf
from export_gate.worker.model.factory import Parameter, bind
from export_gate.worker.model.reference import Reference, Runner
from export_gate.worker.process.stages import Desk

SHARE = 20
"""Of `controls.budget`: what a sweep may cost on each program, with the default about a second."""
CALL_FLOPS = 1e6
"""What running one node of a graph costs besides its arithmetic, as work."""
UNKNOWN_NODES = 100
"""Nodes of a graph that is not known, such as that of a file that was handed in."""
OUTPUT_BYTES = 1 << 27
"""Eager's answers are held until every target is done."""
TIME_SHARE = 20
"""Of the model's timeout, at most: a safety for models whose time is not in their FLOPs."""
KEPT = 16
"""Results that are recorded for each target, the worst."""


Compare = Callable[[ControlCase, Sequence[Leaf]], CaseResult]
"""Compares an artifact's leaves with eager's at that control input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """Sizes with eager's answers."""

    cases: tuple[ControlCase, ...] = ()
    references: Mapping[str, Reference] = field(default_factory=dict)


def affordable(
    contract: ModelContract, known: Sequence[ControlCase], flops: float | None, nodes: int | None
) -> tuple[ControlCase, ...]:
    """The sweep's first cases that the budget allows, without those whose results are known anyway.

    Work is counted, not measured, so that the choice is the same on every machine.

    Args:
        contract: Of the model.
        known: Its control inputs, the first of which has `flops`.
        flops: Forward operations of one call; None if they could not be counted.
        nodes: Of the exported graph; None if there is none.
    """
    names = {case.name for case in known}
    first = max(total_elements(contract, known[0].sizes), 1) if known else 1
    left = contract.controls.budget_flops / SHARE
    kept: list[ControlCase] = []
    for case in sweep_cases(contract):
        # Also those that are known: what the sweep costs would else depend on the rest of the control set.
        left -= (flops or 0.0) * total_elements(contract, case.sizes) / first + CALL_FLOPS * (nodes or UNKNOWN_NODES)
        # A prefix of the seeded order, so that a larger budget only adds cases.
        if left < 0:
            break
        # A separate size has an export of its own, which the main one does not stand in for.
        is_separate = any(case.sizes.get(dim.name) in dim.separate for dim in contract.dims)
        if case.name not in names and not is_separate:
            kept.append(case)
    return tuple(kept)


def answered(references: Mapping[str, Reference], cases: Sequence[ControlCase]) -> Sweep:
    """The cases that eager answered, as far as their outputs fit in memory."""
    kept: list[ControlCase] = []
    left = OUTPUT_BYTES
    for case in cases:
        reference = references.get(case.name)
        left -= sum(leaf.value.nbytes for leaf in reference.leaves if leaf.value is not None) if reference else 0
        if left < 0:
            break
        if reference is not None:
            kept.append(case)
    return Sweep(cases=tuple(kept), references={case.name: references[case.name] for case in kept})


def run_sweep(
    sweep: Sweep,
    run: Runner,
    parameters: Sequence[Parameter],
    compare: Compare,
    desk: Desk,
    *,
    key: str,
    timeout_s: float,
) -> tuple[list[CaseResult], int]:
    """The results that differ most on one target, and how many sizes were run."""
    deadline = time.monotonic() + timeout_s / TIME_SHARE
    differing: list[CaseResult] = []
    count = 0
    for case in sweep.cases:
        if time.monotonic() > deadline:
            break
        desk.channel.at("run", target=key, case=case.name)
        result = _result(case, run, parameters, compare, desk)
        count += 1
        if _excess(result) > 0:
            differing = sorted([*differing, result], key=_excess, reverse=True)[:KEPT]
    return differing, count


def _result(
    case: ControlCase, run: Runner, parameters: Sequence[Parameter], compare: Compare, desk: Desk
) -> CaseResult:
    try:
        actual = run(bind(case.make(), parameters))
    except BaseException as error:  # noqa: BLE001 - whatever the artifact raises is an observation
        return CaseResult(case=case.name, failure=desk.failure(error, "run", case.name))
    return compare(case, actual)


def _excess(result: CaseResult) -> float:
    """Orders results; zero if all outputs are equal."""
    if result.failure or result.structure:
        return math.inf
    return max(map(_difference, result.outputs), default=0.0)


def _difference(output: Comparison) -> float:
    is_other = (output.expected_dtype, output.expected_shape) != (output.actual_dtype, output.actual_shape)
    is_float = output.expected_dtype.startswith(("float", "bfloat", "complex"))
    if is_other or output.nonfinite_mismatched or (output.mismatched_elements and not is_float):
        return math.inf
    return output.max_abs_diff / (output.expected_max_abs or 1.0)
