"""An output has another shape than eager's; nothing is broadcast."""

from __future__ import annotations

from collections.abc import Iterator

from export_gate.rules.base import Finding, Rule
from export_gate.rules.cases import differing_outputs
from export_gate.rules.measure import Measured
from export_gate.rules.size_advice import size_advice
from export_gate.rules.wording import shape
from export_gate.wall.nodes import GuiltyNode
from export_gate.wall.observation import Comparison


def check(measured: Measured) -> Iterator[Finding]:
    """One finding for each output of each target."""
    for differing in differing_outputs(measured, "shape"):
        worst = differing.worst.comparison
        difference = f"expected shape {shape(worst.expected_shape)}, got {shape(worst.actual_shape)}"
        trace = differing.blame.trace
        yield differing.finding(RULE, difference, _hint(worst, trace.guilty if trace else None))


def _hint(worst: Comparison, guilty: GuiltyNode | None) -> str:
    if len(worst.expected_shape) != len(worst.actual_shape):
        return (
            "The number of axes differs: look for `squeeze()` without a dim, an index that drops an axis, or a 0-d "
            "result; name the axis to keep the rank at every size."
        )
    axes = zip(worst.expected_shape, worst.actual_shape, strict=True)
    axis = next(k for k, (expected, actual) in enumerate(axes) if expected != actual)
    resized = size_advice(guilty, worst.expected_shape[axis], worst.actual_shape[axis])
    if resized:
        return f"Axis {axis} is {worst.actual_shape[axis]} instead of {worst.expected_shape[axis]}. {resized}"
    return (
        f"Axis {axis} is {worst.actual_shape[axis]} instead of {worst.expected_shape[axis]}: look for a size that "
        "export fixed (`int(x.shape[k])`, a hard-coded reshape) and for sizes that are rounded (`ceil_mode`, "
        "`scale_factor`, stride); derive the size from `x.shape` with integer arithmetic."
    )


RULE = Rule(
    name="shape-mismatch",
    severity="violation",
    summary="An output has another shape than eager's.",
    stage="compare",
    waivable=("target", "output", "case"),
    check=check,
)
