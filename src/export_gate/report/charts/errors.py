"""Chart of error and allowed error at each control input: one panel per target, all on one logarithmic scale."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from export_gate.report.charts import shapes
from export_gate.report.charts.points import Point
from export_gate.report.charts.record import Chart, Entry, Panel, Shape, Tick, Words
from export_gate.report.charts.scale import Heights, heights
from export_gate.report.filters import number
from export_gate.wall.contract import TargetName
from export_gate.wall.observation import ControlInput
from export_gate.wall.words import count

WIDTH, LEFT, RIGHT = 960.0, 74.0, 18.0
TITLE, HEIGHT, GAP = 26.0, 112.0, 12.0
EXACT = 22.0
"""Line above the panels for the targets without any difference, which have none."""
FOOT = 92.0
"""Space below the last panel for the names of families and the axis label."""
WIDEST_SLOT, FAMILY_GAP = 28.0, 0.6
NAME_STEP = 19.0
"""Width on the axis that each slanted line of text needs."""

MARKS: dict[str, Callable[[float, float], str]] = {
    "zero": partial(shapes.square, radius=2.5),
    "ok": shapes.dot,
    "over": shapes.cross,
    "fault": shapes.triangle,
}
LEGEND = (
    Entry(kind="ok", d=shapes.dot(10, 6), text="error within the tolerance"),
    Entry(kind="over", d=shapes.cross(10, 6), text="error over the tolerance"),
    Entry(kind="allowed", d=shapes.bar(10, 6, 16), text="allowed: atol + rtol * max|M|"),
    Entry(kind="zero", d=shapes.square(10, 6, 2.5), text="no difference at all"),
    Entry(kind="fault", d=shapes.triangle(10, 6, 5), text="no number: NaN, shape, dtype or a failed call"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slots:
    """Position of each control input on the horizontal axis."""

    place: dict[str, float]
    width: float
    families: tuple[Tick, ...]


def errors_chart(
    inputs: Sequence[ControlInput], points: Mapping[TargetName, Sequence[Point]], model: str
) -> Chart | None:
    """The chart, or None if nothing differs."""
    seen = {target: found for target, found in points.items() if found}
    if not any(point.ratio for found in seen.values() for point in found):
        return None
    slots = _slots(inputs, [point.case for found in seen.values() for point in found])
    everything = [point for found in seen.values() for point in found]
    # Of all panels, which then have the same scale and can be compared.
    values = [value for point in everything for value in (point.measured, point.allowed) if value]
    exact = [target for target, found in seen.items() if not any(point.ratio for point in found)]
    # A panel without any difference would be empty; its target gets a line of text.
    drawn = {target: found for target, found in seen.items() if target not in exact}
    head = TITLE + (EXACT if exact else 0.0)
    tops = [head + place * (HEIGHT + TITLE + GAP) for place in range(len(drawn))]
    panels = [
        _panel(target, found, slots, top, heights(values, top, top + HEIGHT))
        for top, (target, found) in zip(tops, drawn.items(), strict=True)
    ]
    if exact:
        words = Words(x=LEFT, y=EXACT - 6, text=_exact_line(exact, seen), kind="detail", anchor="start")
        panels[0] = replace(panels[0], words=(words, *panels[0].words))
    bottom = tops[-1] + HEIGHT
    return Chart(
        title=f"{model}: error against allowed at each control input",
        summary=" ".join(_summary(target, found) for target, found in seen.items()),
        width=WIDTH,
        height=bottom + FOOT,
        x_label="control inputs by family",
        y_label="max |P-M|, log scale",
        panels=(*panels[:-1], _with_families(panels[-1], slots)),
        legend=tuple(entry for entry in LEGEND if any(entry.kind == s.kind for p in panels for s in p.shapes)),
        wide=True,
    )


def _exact_line(exact: Sequence[TargetName], seen: Mapping[TargetName, Sequence[Point]]) -> str:
    """`exported-program: exact at 48 control inputs; pt2: exact at 48 control inputs`."""
    return "; ".join(f"{target}: {_verdict(seen[target])}" for target in exact)


def _slots(inputs: Sequence[ControlInput], cases: Sequence[str]) -> Slots:
    """Control inputs of a family side by side, families in order of their first member."""
    ran = dict.fromkeys(cases)
    families: dict[str, list[str]] = {}
    for member in inputs:
        if member.name in ran:
            families.setdefault(member.family, []).append(member.name)
    known = {name for names in families.values() for name in names}
    # Inputs of the sweep over sizes are not members of the control set.
    if others := [name for name in ran if name not in known]:
        families.setdefault("other", []).extend(others)
    total = sum(map(len, families.values())) + FAMILY_GAP * len(families)
    width = min((WIDTH - LEFT - RIGHT) / total, WIDEST_SLOT)
    place, ticks, x = {}, [], LEFT + FAMILY_GAP * width / 2
    for family, names in families.items():
        place.update({name: x + (turn + 0.5) * width for turn, name in enumerate(names)})
        ticks.append(Tick(at=x + len(names) * width / 2, label=family))
        x += (len(names) + FAMILY_GAP) * width
    return Slots(place=place, width=width, families=tuple(ticks))


def _panel(target: TargetName, points: Sequence[Point], slots: Slots, top: float, axis: Heights) -> Panel:
    label = _label(points, slots, axis)
    return Panel(
        left=LEFT,
        top=top,
        width=WIDTH - LEFT - RIGHT,
        height=HEIGHT,
        y_ticks=axis.ticks,
        shapes=(*_bounds(points, slots, axis), *([label[0]] if label else []), *_marks(points, slots, axis)),
        words=(
            Words(x=LEFT, y=top - 9, text=target, kind="name", anchor="start"),
            Words(x=WIDTH - RIGHT, y=top - 9, text=_verdict(points), kind="detail", anchor="end"),
            *([label[1]] if label else []),
        ),
    )


def _bounds(points: Sequence[Point], slots: Slots, axis: Heights) -> list[Shape]:
    drawn = [shapes.bar(slots.place[p.case], axis.of(p.allowed), 0.8 * slots.width) for p in points if p.allowed]
    return [Shape(kind="allowed", d="".join(drawn))] if drawn else []


def _marks(points: Sequence[Point], slots: Slots, axis: Heights) -> list[Shape]:
    drawn: dict[str, str] = {}
    for point in points:
        kind = _kind(point)
        drawn[kind] = drawn.get(kind, "") + MARKS[kind](slots.place[point.case], axis.of(point.measured))
    return [Shape(kind=kind, d=drawn[kind]) for kind in MARKS if kind in drawn]


def _kind(point: Point) -> str:
    if point.measured is None:
        return "fault"
    if point.over:
        return "over"
    return "ok" if point.measured else "zero"


def _label(points: Sequence[Point], slots: Slots, axis: Heights) -> tuple[Shape, Words] | None:
    """The name of the worst violation, in the strip above all numbers, with a line down to its mark."""
    worst = _worst(points)
    if not worst.over:
        return None
    x = slots.place[worst.case]
    is_left = x < (LEFT + WIDTH - RIGHT) / 2
    down = f"{shapes.at(x, axis.roof)}V{shapes.coordinate(axis.of(worst.measured) - 6)}" if worst.measured else ""
    words = Words(
        x=x + (9 if is_left else -9),
        y=axis.roof + 4,
        text=worst.case,
        kind="worst",
        anchor="start" if is_left else "end",
    )
    return Shape(kind="leader", d=down), words


def _worst(points: Sequence[Point]) -> Point:
    return max(points, key=lambda point: (point.over, point.ratio, point.measured or 0.0))


def _verdict(points: Sequence[Point]) -> str:
    over = sum(point.over for point in points)
    if over:
        return f"{over} of {count(len(points), 'control input')} over the tolerance"
    if not any(point.measured for point in points):
        return f"exact at {count(len(points), 'control input')}"
    return f"{count(len(points), 'control input')} within the tolerance"


def _summary(target: TargetName, points: Sequence[Point]) -> str:
    worst = _worst(points)
    if worst.measured is None:
        return f"{target}: {_verdict(points)}; {worst.case}: {worst.why}."
    if not worst.measured:
        return f"{target}: {_verdict(points)}."
    allowed = number(worst.allowed or 0.0)
    return f"{target}: {_verdict(points)}; the worst is {number(worst.measured)} of {allowed} allowed at {worst.case}."


def _with_families(panel: Panel, slots: Slots) -> Panel:
    """Center each family's name under its points; move it to the right if it would touch the previous one."""
    y, names, free = panel.top + panel.height + 14, [], 0.0
    for tick in slots.families:
        x = max(tick.at + 3, free)
        free = x + NAME_STEP
        names.append(Words(x=x, y=y, text=tick.label, kind="tick", anchor="end", turn=-38))
    return replace(panel, words=(*panel.words, *names))
