"""Chart of the error per size of one dim: the worst share of the tolerance at each size, one line per target."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from export_gate.report.charts import shapes
from export_gate.report.charts.points import Point
from export_gate.report.charts.record import Chart, Entry, Panel, Shape, Tick
from export_gate.report.charts.scale import Heights, heights
from export_gate.report.filters import share
from export_gate.wall.contract import TargetName
from export_gate.wall.observation import ControlInput
from export_gate.wall.targets import KIND_NAMES

WIDTH, HEIGHT = 440.0, 250.0
LEFT, RIGHT, TOP, BOTTOM = 66.0, 16.0, 14.0, 50.0
MOST_LABELS = 8
SHIFT = 7.0
MARKS: tuple[Callable[[float, float], str], ...] = (shapes.circle, shapes.square, shapes.triangle, shapes.diamond)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pen:
    """How one target is drawn."""

    tone: str
    """Class of its colour in the page."""
    mark: Callable[[float, float], str]


def sizes_chart(dim: str, inputs: Sequence[ControlInput], points: Mapping[TargetName, Sequence[Point]]) -> Chart | None:
    """The chart of one dim, or None if nothing differs or only one of its sizes was run."""
    size_of = {entry.name: entry.sizes[dim] for entry in inputs if dim in entry.sizes}
    worst = {target: _worst_of_each(found, size_of) for target, found in points.items()}
    sizes = sorted({size for shares in worst.values() for size in shares})
    is_exact = not any(share for shares in worst.values() for share in shares.values())
    if is_exact or len(sizes) < 2:  # noqa: PLR2004 - one size has no course
        return None
    step = (WIDTH - LEFT - RIGHT) / len(sizes)
    place = {size: LEFT + (turn + 0.5) * step for turn, size in enumerate(sizes)}
    shares_seen = [value for shares in worst.values() for value in shares.values()]
    # The bound is at 1 and belongs on every chart, with room below it.
    axis = heights([*shares_seen, 0.1, 1.0], TOP, HEIGHT - BOTTOM)
    bound = axis.of(1)
    shown = [target for target in worst if worst[target]]
    pens = _pens(shown)
    series = [
        shape
        for turn, target in enumerate(shown)
        for shape in _series(pens[target], worst[target], _shifted(place, turn - (len(shown) - 1) / 2), axis)
    ]
    limit = Shape(kind="allowed", d=f"{shapes.at(LEFT, bound)}h{shapes.coordinate(WIDTH - LEFT - RIGHT)}")
    over = Shape(kind="beyond", d=shapes.box(LEFT, TOP, WIDTH - LEFT - RIGHT, bound - TOP))
    every = math.ceil(len(sizes) / MOST_LABELS)
    return Chart(
        title=f"Error per size of {dim}",
        summary=" ".join(_summary(dim, target, shares) for target, shares in worst.items() if shares),
        width=WIDTH,
        height=HEIGHT,
        x_label=f"size of {dim}",
        y_label="worst error / allowed, log scale",
        panels=(
            Panel(
                left=LEFT,
                top=TOP,
                width=WIDTH - LEFT - RIGHT,
                height=HEIGHT - TOP - BOTTOM,
                x_ticks=tuple(Tick(at=place[size], label=str(size)) for size in sizes[::every]),
                y_ticks=axis.ticks,
                shapes=(over, limit, *series),
            ),
        ),
        legend=(
            *(Entry(kind=f"series {pens[t].tone}", d=pens[t].mark(10, 6), text=t) for t in shown),
            Entry(kind="allowed", d=shapes.bar(10, 6, 16), text="allowed; above it is over the tolerance"),
        ),
    )


def _pens(targets: Sequence[TargetName]) -> dict[TargetName, Pen]:
    """One pen for each: a target called like its kind has the kind's, the others have what is left of mark and tone."""
    count = len(MARKS)
    pens = {name: Pen(tone=name, mark=MARKS[turn % count]) for turn, name in enumerate(KIND_NAMES)}
    for turn, name in enumerate(target for target in targets if target not in pens):
        # The marks move on by one with each round of tones, so that no pair is used twice.
        pens[name] = Pen(tone=f"tone-{turn % count + 1}", mark=MARKS[(turn + turn // count + 1) % count])
    return pens


def _worst_of_each(points: Sequence[Point], size_of: Mapping[str, int]) -> dict[int, float]:
    worst: dict[int, float] = {}
    for point in points:
        if point.case in size_of:
            size = size_of[point.case]
            worst[size] = max(worst.get(size, 0.0), point.ratio)
    return worst


def _shifted(place: Mapping[int, float], turn: float) -> dict[int, float]:
    """Shift the points of each target sideways, so that equal errors do not hide each other."""
    return {size: x + SHIFT * turn for size, x in place.items()}


def _series(pen: Pen, shares: Mapping[int, float], place: Mapping[int, float], axis: Heights) -> tuple[Shape, Shape]:
    spots = [(place[size], axis.of(shares[size])) for size in sorted(shares)]
    marks = "".join(pen.mark(x, y) for x, y in spots)
    return Shape(kind=f"course {pen.tone}", d=shapes.line(spots)), Shape(kind=f"series {pen.tone}", d=marks)


def _summary(dim: str, target: TargetName, shares: Mapping[int, float]) -> str:
    shown = ", ".join(f"{dim}={size} {_share_words(value)}" for size, value in sorted(shares.items()))
    return f"{target}: {shown}."


def _share_words(value: float) -> str:
    return "no number or nothing allowed" if math.isinf(value) else share(value)
