"""Error histogram of one output: how many entries differ by how much, on two logarithmic axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from export_gate.report.charts import shapes
from export_gate.report.charts.points import Point
from export_gate.report.charts.record import Chart, Entry, Panel, Shape, Tick, Words
from export_gate.report.charts.scale import LogScale, log_scale
from export_gate.report.filters import count, number
from export_gate.wall.observation import Comparison, ErrorPicture

WIDTH, HEIGHT = 440.0, 280.0
LEFT, RIGHT, TOP, BOTTOM = 66.0, 20.0, 26.0, 52.0
# The bar of equal entries has a place of its own, since a logarithmic axis has no 0.
EQUAL_WIDTH, EQUAL_GAP = 20.0, 16.0
# As the worker counts: see `ErrorPicture.unequal`.
STEPS_PER_DECADE = 4
FURTHEST_DECADES = 3
"""The bound is drawn if it is within this many decades of the bars, else given as text."""

Bin = tuple[float, float, int]
"""(exclusive lower edge, inclusive upper edge, number of entries)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """The scales and the bound."""

    x: LogScale
    y: LogScale
    allowed: float | None
    """None if no single number bounds all entries."""


def spread_chart(picture: ErrorPicture, comparison: Comparison, worst: Point, name: str) -> Chart | None:
    """The histogram of an output at its worst control input, or None if no two finite entries differ."""
    bins = _bins(picture.unequal, comparison.max_abs_diff)
    if not bins:
        return None
    allowed = worst.allowed if worst.index is None and worst.allowed else None
    edges = [edge for low, high, _ in bins for edge in (low, high)]
    is_near = allowed is not None and min(edges) / 10**FURTHEST_DECADES < allowed < max(edges) * 10**FURTHEST_DECADES
    plot = Plot(
        x=log_scale([*edges, *([allowed] if is_near and allowed else [])], _bars_start(picture.equal), WIDTH - RIGHT),
        y=log_scale([1.0, *(float(bin_[2]) for bin_ in bins), float(picture.equal)], HEIGHT - BOTTOM - 10, TOP),
        allowed=allowed,
    )
    return Chart(
        title=f"Error histogram: {name}",
        summary=_summary(picture, bins, plot.allowed),
        width=WIDTH,
        height=HEIGHT,
        x_label="|P-M| of one entry, log scale",
        y_label="entries, log scale",
        panels=(_panel(picture, bins, plot, is_near=is_near),),
        legend=_legend(bins, plot.allowed),
    )


def _bars_start(equal: int) -> float:
    return LEFT + (EQUAL_WIDTH + 2 * EQUAL_GAP if equal else 0)


def _bins(unequal: Sequence[int], largest: float) -> list[Bin]:
    """Bins from the largest down; the last one also contains all smaller entries, which the chart notes."""
    if not 0 < largest < math.inf:
        return []
    return [
        (largest * 10 ** (-(step + 1) / STEPS_PER_DECADE), largest * 10 ** (-step / STEPS_PER_DECADE), entries)
        for step, entries in enumerate(unequal)
        if entries
    ]


def _panel(picture: ErrorPicture, bins: Sequence[Bin], plot: Plot, *, is_near: bool) -> Panel:
    floor = HEIGHT - BOTTOM
    # In the order in which they are drawn.
    parts: dict[str, str] = {"within": "", "part": "", "beyond-bar": ""}
    for low, high, entries in bins:
        top, left = plot.y.at(entries), plot.x.at(low)
        parts[_side(low, high, plot.allowed)] += shapes.box(left, top, plot.x.at(high) - left - 0.6, floor - top)
    if picture.equal:
        top = plot.y.at(picture.equal)
        parts["equal"] = shapes.box(LEFT + EQUAL_GAP, top, EQUAL_WIDTH, floor - top)
    drawn = [Shape(kind=kind, d=d) for kind, d in parts.items() if d]
    if over := parts["part"] + parts["beyond-bar"]:
        drawn.append(Shape(kind="hatch", d=over))
    equal = Tick(at=LEFT + EQUAL_GAP + EQUAL_WIDTH / 2, label="0")
    limit, words = _limit(plot, is_near=is_near)
    return Panel(
        left=LEFT,
        top=TOP,
        width=WIDTH - LEFT - RIGHT,
        height=floor - TOP,
        x_ticks=(*([equal] if picture.equal else []), *plot.x.ticks(5)),
        y_ticks=tuple(Tick(at=plot.y.at_power(power), label=count(10**power)) for power in plot.y.powers(5)),
        shapes=(*drawn, *limit),
        words=words,
    )


def _side(low: float, high: float, allowed: float | None) -> Literal["within", "part", "beyond-bar"]:
    if allowed is None or high <= allowed:
        return "within"
    return "beyond-bar" if low >= allowed else "part"


def _limit(plot: Plot, *, is_near: bool) -> tuple[tuple[Shape, ...], tuple[Words, ...]]:
    if plot.allowed is None:
        return (), ()
    text = f"allowed {number(plot.allowed)}"
    if not is_near:
        return (), (Words(x=WIDTH - RIGHT, y=TOP - 10, text=f"{text}, off this scale", kind="limit", anchor="end"),)
    x = plot.x.at(plot.allowed)
    anchor: Literal["start", "end"] = "end" if x > WIDTH / 2 else "start"
    line = Shape(kind="limit-line", d=f"{shapes.at(x, TOP - 6)}V{shapes.coordinate(HEIGHT - BOTTOM)}")
    return (line,), (Words(x=x, y=TOP - 10, text=text, kind="limit", anchor=anchor),)


def _legend(bins: Sequence[Bin], allowed: float | None) -> tuple[Entry, ...]:
    sides = {_side(low, high, allowed) for low, high, _ in bins}
    if sides == {"within"}:
        return ()
    words = {
        "within": "entries within what is allowed",
        "part": "the bar that contains the bound",
        "beyond-bar": "entries over what is allowed",
    }
    return tuple(
        Entry(kind=kind, d=shapes.box(4, 1, 12, 10), text=text) for kind, text in words.items() if kind in sides
    )


def _summary(picture: ErrorPicture, bins: Sequence[Bin], allowed: float | None) -> str:
    entries = sum(bin_[2] for bin_ in bins)
    parts = [f"{count(picture.equal)} of {count(picture.equal + entries)} entries are equal"]
    parts.append(f"the others differ by {number(bins[-1][0])} to {number(bins[0][1])}")
    if allowed is not None:
        over = sum(n for low, _, n in bins if low >= allowed)
        parts.append(
            f"{over} certainly over the {number(allowed)} allowed" if over else f"the bound is {number(allowed)}"
        )
    return f"{'; '.join(parts)}."
