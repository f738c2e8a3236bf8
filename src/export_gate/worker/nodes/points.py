"""Reduce the errors along a graph to as many points as a chart shows."""

from __future__ import annotations

from collections.abc import Sequence

from export_gate.wall.nodes import NodePoint
from export_gate.worker.nodes.gap import Gap

MOST_POINTS = 160


def points(gaps: Sequence[tuple[str, Gap]]) -> tuple[NodePoint, ...]:
    """One point for each value in order; of long graphs the largest error in each of equal parts."""
    step = -(-len(gaps) // MOST_POINTS) or 1
    parts = [gaps[start : start + step] for start in range(0, len(gaps), step)]
    worst = [max(part, key=lambda one: one[1].error) for part in parts]
    return tuple(NodePoint(name=name, error=gap.error) for name, gap in worst)
