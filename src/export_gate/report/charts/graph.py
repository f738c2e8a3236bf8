"""Chart of the error along an artifact's graph: one dot for each node, and where it starts to be wrong."""

from __future__ import annotations

import math
from collections.abc import Sequence

from export_gate.report.charts import shapes
from export_gate.report.charts.record import Chart, Entry, Panel, Shape, Tick, Words
from export_gate.report.charts.scale import Heights, heights
from export_gate.report.filters import number
from export_gate.wall.nodes import NodePoint, NodeTrace
from export_gate.wall.words import count

WIDTH, HEIGHT = 440.0, 250.0
LEFT, RIGHT, TOP, BOTTOM = 66.0, 16.0, 26.0, 50.0
MOST_LABELS = 5
LONGEST_NAME = 28


def graph_chart(trace: NodeTrace, name: str) -> Chart | None:
    """The chart of one output; None if fewer than two nodes were compared."""
    points = trace.points
    if len(points) < 2:  # noqa: PLR2004 - one node has no course
        return None
    step = (WIDTH - LEFT - RIGHT) / len(points)
    places = [LEFT + (turn + 0.5) * step for turn in range(len(points))]
    # At least from float32's rounding to an error as large as the value itself.
    axis = heights([*(point.error for point in points), 1e-7, 1.0], TOP, HEIGHT - BOTTOM)
    guilty = trace.guilty.name if trace.guilty else None
    # The converter may have merged the guilty node into the one that was compared.
    marked = (trace.guilty.point or guilty) if trace.guilty else None
    at = next((place for place, point in zip(places, points, strict=True) if point.name == marked), None)
    every = math.ceil(len(points) / MOST_LABELS)
    return Chart(
        title=f"Error along the graph: {name}",
        summary=_summary(points, guilty),
        width=WIDTH,
        height=HEIGHT,
        x_label="nodes in the graph's order",
        y_label="|P-M| / max |M|, log scale",
        panels=(
            Panel(
                left=LEFT,
                top=TOP,
                width=WIDTH - LEFT - RIGHT,
                height=HEIGHT - TOP - BOTTOM,
                x_ticks=tuple(Tick(at=places[turn], label=str(turn + 1)) for turn in range(0, len(points), every)),
                y_ticks=axis.ticks,
                shapes=tuple(_shapes(points, places, axis, at)),
                words=() if at is None or guilty is None else (_mark(guilty, at),),
            ),
        ),
        legend=(
            Entry(kind="series onnx", d=shapes.circle(10, 6, 2.5), text="one node's value"),
            *([] if at is None else [Entry(kind="allowed", d="M10 0v12", text="the first node that is wrong")]),
        ),
    )


def _shapes(points: Sequence[NodePoint], places: Sequence[float], axis: Heights, at: float | None) -> list[Shape]:
    spots = [(place, axis.of(point.error)) for place, point in zip(places, points, strict=True)]
    marks = "".join(shapes.circle(x, y, 2.5) for x, y in spots)
    line = (
        []
        if at is None
        else [Shape(kind="allowed", d=f"{shapes.at(at, TOP)}v{shapes.coordinate(HEIGHT - TOP - BOTTOM)}")]
    )
    return [*line, Shape(kind="course onnx", d=shapes.line(spots)), Shape(kind="series onnx", d=marks)]


def _mark(guilty: str, at: float) -> Words:
    """The node's name above its line, on the side that has room."""
    shown = guilty if len(guilty) <= LONGEST_NAME else f"{guilty[: LONGEST_NAME - 1]}…"
    is_left = at < (LEFT + WIDTH - RIGHT) / 2
    return Words(x=at, y=TOP - 6, text=shown, kind="tick", anchor="start" if is_left else "end")


def _summary(points: Sequence[NodePoint], guilty: str | None) -> str:
    worst = max(points, key=lambda point: point.error)
    size = "no number" if not math.isfinite(worst.error) else number(worst.error)
    first = f"The first wrong one is {guilty}." if guilty else "No single one is wrong."
    return f"{count(len(points), 'node')}; the largest error, {size}, is at {worst.name}. {first}"
