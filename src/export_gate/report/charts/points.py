"""Turn measurements into one point per control input of a target: the worst output's error and the allowed error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from export_gate.rules.measure import Measured, Measurement
from export_gate.wall.contract import TargetName
from export_gate.wall.observation import CaseResult


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
    """Index on the axis that is judged, if there is one."""


def target_points(measured: Measured, target: TargetName) -> tuple[Point, ...]:
    """Points of all control inputs that the target was run on, its separate exports included, in order."""
    leaves: dict[tuple[str, str], list[Measurement]] = {}
    for leaf in measured.of(target):
        leaves.setdefault((leaf.export, leaf.case), []).append(leaf)
    return tuple(
        worst_output(case, leaves.get((seen.export, case.case), ()))
        for seen in measured.seen(target)
        for case in seen.cases
    )


def worst_output(case: CaseResult, leaves: Sequence[Measurement]) -> Point:
    """The output that is farthest over its bound, or else closest to it."""
    if case.failure is not None:
        return _without_number(case.case, "", f"the call failed ({case.failure.type})")
    if case.structure is not None:
        return _without_number(case.case, "", "outputs differ from eager's")
    return max(
        map(output_point, leaves),
        # Of those over the tolerance, one without a number (NaN, another shape) is worse than any number.
        key=lambda p: (p.over, p.measured is None, p.ratio),
        default=Point(case=case.case, why="nothing"),
    )


def output_point(leaf: Measurement) -> Point:
    """One output."""
    norm = leaf.norm
    if norm is None or leaf.fault == "nonfinite":
        return _without_number(leaf.case, leaf.output, _reason(leaf))
    if leaf.lacks_axis:
        return _without_number(leaf.case, leaf.output, "no norms along the tolerance axis")
    if not (math.isfinite(norm.measured) and math.isfinite(norm.allowed)):
        return _without_number(leaf.case, leaf.output, "a difference or a bound beyond float64")
    return Point(
        case=leaf.case,
        output=leaf.output,
        measured=norm.measured,
        allowed=norm.allowed,
        ratio=norm.ratio,
        over=leaf.fault is not None,
        index=norm.index,
    )


def _without_number(case: str, output: str, why: str) -> Point:
    return Point(case=case, output=output, ratio=math.inf, over=True, why=why)


def _reason(leaf: Measurement) -> str:
    if leaf.fault == "nonfinite":
        return "NaN or infinity that eager does not have, or that is forbidden"
    comparison = leaf.comparison
    if leaf.fault == "dtype":
        return f"{comparison.actual_dtype}, expected {comparison.expected_dtype}"
    return f"shape {comparison.actual_shape}, expected {comparison.expected_shape}"
