"""Heat map of one output's slice with the largest difference; each cell shows the largest difference in it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from export_gate.report.charts import shapes
from export_gate.report.charts.points import Point
from export_gate.report.charts.record import Chart, Entry, Panel, Shape, Tick, Words
from export_gate.report.filters import number
from export_gate.wall.contract import TargetName
from export_gate.wall.observation import Comparison, ErrorPicture

WIDTH = 440.0
LEFT, RIGHT, TOP, BOTTOM = 66.0, 20.0, 14.0, 52.0
WIDEST_CELL, TALLEST_CELL, TALLEST = 84.0, 34.0, 320.0
NARROWEST_LABELLED = 40.0
"""Cells that are at least this wide show their number."""

LEVELS = (
    # Half a decade each: neighbouring shades differ by about three times, which an eye can tell apart.
    ("heat-1", 0.01, "up to 1%"),
    ("heat-2", 10**-1.5, "up to 3%"),
    ("heat-3", 0.1, "up to 10%"),
    ("heat-4", 10**-0.5, "up to 32%"),
    ("heat-5", 1.0, "up to 100%"),
    ("hot-1", 10**0.5, "up to 3x"),
    ("hot-2", 10.0, "up to 10x"),
    ("hot-3", 100.0, "up to 100x"),
    ("hot-4", math.inf, "more"),
)
"""Style, largest share of the allowed error, and the text of the legend."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """Layout of the cells."""

    rows: int
    columns: int
    cell_width: float
    cell_height: float

    def corner(self, place: int) -> tuple[float, float]:
        """Top left of a cell, counted row by row."""
        row, column = divmod(place, self.columns)
        return LEFT + column * self.cell_width, TOP + row * self.cell_height


def heat_chart(
    picture: ErrorPicture, comparison: Comparison, worst: Point, target: TargetName, names: Sequence[str]
) -> Chart | None:
    """The heat map, or None for an output without axes; `names` are the labels of its axes."""
    if not picture.grid or not picture.axes:
        return None
    sheet = _sheet(len(picture.grid) // picture.columns, picture.columns)
    shape = comparison.expected_shape
    # With a tolerance axis, no single bound applies to all cells.
    is_bounded = worst.index is None and worst.allowed is not None
    limit = (worst.allowed or 0.0) if is_bounded else max(filter(math.isfinite, picture.grid), default=0.0)
    kinds = [_kind(gap, limit) for gap in picture.grid]
    height = sheet.rows * sheet.cell_height
    return Chart(
        title=f"Where it differs: {picture.output}{_slice(picture, len(shape))} on {target} at {picture.case}",
        summary=_summary(picture, shape),
        width=WIDTH,
        height=TOP + height + BOTTOM,
        x_label=f"{names[picture.axes[-1]]}, {shape[picture.axes[-1]]} long",
        y_label=f"{names[picture.axes[0]]}, {shape[picture.axes[0]]} long" if len(picture.axes) > 1 else "",
        panels=(
            Panel(
                left=LEFT,
                top=TOP,
                width=sheet.columns * sheet.cell_width,
                height=height,
                x_ticks=_ticks(sheet.columns, shape[picture.axes[-1]], LEFT, sheet.cell_width),
                y_ticks=_row_ticks(picture, sheet, shape),
                shapes=(*_cells(kinds, sheet), _ring(picture, sheet, shape)),
                words=_numbers(picture, sheet),
            ),
        ),
        legend=_legend(kinds, is_bounded=is_bounded and limit > 0),
    )


def _sheet(rows: int, columns: int) -> Sheet:
    return Sheet(
        rows=rows,
        columns=columns,
        cell_width=min((WIDTH - LEFT - RIGHT) / columns, WIDEST_CELL),
        # Never taller than wide.
        cell_height=min(TALLEST / rows, TALLEST_CELL, (WIDTH - LEFT - RIGHT) / columns),
    )


def _kind(gap: float, limit: float) -> str:
    if not math.isfinite(gap):
        return "nan"
    if gap == 0:
        return "equal-cell"
    share = gap / limit if limit > 0 else math.inf
    return next(kind for kind, most, _ in LEVELS if share <= most)


def _cells(kinds: Sequence[str], sheet: Sheet) -> list[Shape]:
    """One shape for each level; levels over the allowed error are hatched."""
    drawn: dict[str, str] = {}
    for place, kind in enumerate(kinds):
        x, y = sheet.corner(place)
        drawn[kind] = drawn.get(kind, "") + shapes.box(x, y, sheet.cell_width, sheet.cell_height)
    over = "".join(d for kind, d in drawn.items() if kind.startswith(("hot", "nan")))
    return [Shape(kind=kind, d=d) for kind, d in sorted(drawn.items())] + (
        [Shape(kind="hatch", d=over)] if over else []
    )


def _ring(picture: ErrorPicture, sheet: Sheet, shape: Sequence[int]) -> Shape:
    """A ring around the cell with the largest difference."""
    column = _cell(picture.where[picture.axes[-1]], shape[picture.axes[-1]], sheet.columns)
    row = _cell(picture.where[picture.axes[0]], shape[picture.axes[0]], sheet.rows) if len(picture.axes) > 1 else 0
    x, y = sheet.corner(row * sheet.columns + column)
    return Shape(kind="ring", d=shapes.box(x, y, sheet.cell_width, sheet.cell_height), title="the largest difference")


def _cell(index: int, length: int, cells: int) -> int:
    """The cell of an index; must match the worker's split: cell k starts at length * k // cells."""
    return max(cell for cell in range(cells) if length * cell // cells <= index)


def _numbers(picture: ErrorPicture, sheet: Sheet) -> tuple[Words, ...]:
    if sheet.cell_width < NARROWEST_LABELLED or sheet.cell_height < TALLEST_CELL / 2:
        return ()
    corners = [sheet.corner(place) for place in range(len(picture.grid))]
    return tuple(
        Words(x=x + sheet.cell_width / 2, y=y + sheet.cell_height / 2 + 4, text=number(gap), kind="cell")
        for (x, y), gap in zip(corners, picture.grid, strict=True)
    )


def _ticks(cells: int, length: int, start: float, step: float) -> tuple[Tick, ...]:
    """The first index of some cells, including the last cell."""
    shown = sorted({0, cells // 4, cells // 2, 3 * cells // 4, cells - 1}) if cells > 8 else range(cells)  # noqa: PLR2004
    return tuple(Tick(at=start + (cell + 0.5) * step, label=str(length * cell // cells), line=False) for cell in shown)


def _row_ticks(picture: ErrorPicture, sheet: Sheet, shape: Sequence[int]) -> tuple[Tick, ...]:
    if len(picture.axes) < 2:  # noqa: PLR2004 - one axis is one row
        return ()
    return _ticks(sheet.rows, shape[picture.axes[0]], TOP, sheet.cell_height)


def _slice(picture: ErrorPicture, rank: int) -> str:
    if rank == len(picture.axes):
        return ""
    parts = [":" if axis in picture.axes else str(picture.where[axis]) for axis in range(rank)]
    return f"[{', '.join(parts)}]"


def _legend(kinds: Sequence[str], *, is_bounded: bool) -> tuple[Entry, ...]:
    of = "of what is allowed" if is_bounded else "of the largest"
    words = {"equal-cell": "equal", **{kind: f"{text} {of}" for kind, _, text in LEVELS}}
    words |= {"hot-4": "more than 100x what is allowed" if is_bounded else "differs; nothing is allowed"}
    words |= {"nan": "NaN or infinity on one side"}
    entries = [Entry(kind=kind, d=shapes.box(4, 1, 12, 10), text=text) for kind, text in words.items() if kind in kinds]
    return (*entries, Entry(kind="ring", d=shapes.box(4, 1, 12, 10), text="the largest difference"))


def _summary(picture: ErrorPicture, shape: Sequence[int]) -> str:
    place = ", ".join(map(str, picture.where))
    differing = sum(gap != 0 for gap in picture.grid)
    cells = (len(picture.grid) // picture.columns, picture.columns)[-len(picture.axes) :]
    blocks = [-(-shape[axis] // number_of) for axis, number_of in zip(picture.axes, cells, strict=True)]
    each = f", each the largest of up to {' x '.join(map(str, blocks))} entries" if max(blocks) > 1 else ""
    return (
        f"{differing} of {len(picture.grid)} cells differ{each}. "
        f"The largest difference is at [{place}] of shape ({', '.join(map(str, shape))})."
    )
