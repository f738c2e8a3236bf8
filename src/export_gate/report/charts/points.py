"""Turn observations into one point per control input of a target: the worst output's error and the allowed error."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from export_gate.rules.cases import nonfinite_policy
from export_gate.wall.contract import ModelContract, TargetName
from export_gate.wall.equivalence import FaultKind, first_fault, lacks_axis_norms, worst_norm
from export_gate.wall.observation import CaseResult, Comparison, ModelObservation
from export_gate.wall.tolerance import resolve_tolerance


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One control input on one target."""

    case: str
    output: str = ""
    measured: float | None = None
    """None if there is no number to draw; `why` gives the reason."""
    allowed: float | None = None
    ratio: float = 0.0
    """measured / allowed; infinite without a number or if nothing is allowed."""
    over: bool = False
    why: str = ""
    index: int | None = None
    """Index on the tolerance axis that is judged, if there is one."""


def target_points(contract: ModelContract, observation: ModelObservation, target: TargetName) -> tuple[Point, ...]:
    """Points of all control inputs that the target was run on, its separate exports included, in order."""
    cases = [case for seen in observation.targets if seen.target == target for case in seen.cases]
    return tuple(worst_output(contract, observation, target, case) for case in cases)


def worst_output(contract: ModelContract, observation: ModelObservation, target: TargetName, case: CaseResult) -> Point:
    """The output that is farthest over its bound, or else closest to it."""
    if case.failure is not None:
        return _without_number(case.case, "", f"the call failed ({case.failure.type})")
    if case.structure is not None:
        return _without_number(case.case, "", "outputs differ from eager's")
    points = _outputs(contract, observation, target, case)
    return max(
        points, key=lambda p: (p.over, p.measured is None, p.ratio), default=Point(case=case.case, why="nothing")
    )


def _outputs(
    contract: ModelContract, observation: ModelObservation, target: TargetName, case: CaseResult
) -> Iterator[Point]:
    for comparison in case.outputs:
        yield output_point(contract, observation, target, case.case, comparison)


def output_point(
    contract: ModelContract, observation: ModelObservation, target: TargetName, case: str, comparison: Comparison
) -> Point:
    """One output."""
    tolerance = resolve_tolerance(contract, target, comparison.expected_dtype)
    fault = first_fault(comparison, tolerance, nonfinite_policy(contract, observation, comparison.output))
    norm = worst_norm(comparison, tolerance)
    if fault not in (None, "value"):
        return _without_number(case, comparison.output, _reason(fault, comparison))
    if lacks_axis_norms(comparison, tolerance):
        return _without_number(case, comparison.output, "no norms along the tolerance axis")
    if not (math.isfinite(norm.measured) and math.isfinite(norm.allowed)):
        return _without_number(case, comparison.output, "a difference or a bound beyond float64")
    return Point(
        case=case,
        output=comparison.output,
        measured=norm.measured,
        allowed=norm.allowed,
        ratio=norm.ratio,
        over=fault is not None,
        index=norm.index,
    )


def _without_number(case: str, output: str, why: str) -> Point:
    return Point(case=case, output=output, ratio=math.inf, over=True, why=why)


def _reason(fault: FaultKind | None, comparison: Comparison) -> str:
    if fault == "dtype":
        return f"{comparison.actual_dtype}, expected {comparison.expected_dtype}"
    if fault == "shape":
        return f"shape {comparison.actual_shape}, expected {comparison.expected_shape}"
    return "NaN or infinity that eager does not have, or that is forbidden"
