"""Build one model's charts from its observations, and the table of their numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from export_gate.report.charts.errors import errors_chart
from export_gate.report.charts.graph import graph_chart
from export_gate.report.charts.heat import heat_chart
from export_gate.report.charts.points import Point, output_point, target_points
from export_gate.report.charts.record import Chart
from export_gate.report.charts.sizes import sizes_chart
from export_gate.report.charts.spread import spread_chart
from export_gate.rules.measure import Measured
from export_gate.wall.contract import ModelContract, TargetName
from export_gate.wall.nodes import NodeTrace
from export_gate.wall.observation import Comparison, ErrorPicture

MOST_CELLS = 32
"""Most cells of a heat map along each axis."""
MOST_ENTRIES = 2**63


@dataclass(frozen=True, slots=True, kw_only=True)
class NumbersRow:
    """One control input."""

    case: str
    points: tuple[Point | None, ...]
    """One point for each column; None if the input was not run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCharts:
    """The charts and numbers that the page shows for one model."""

    model: str
    charts: tuple[Chart, ...]
    targets: tuple[TargetName, ...]
    """Columns of the table."""
    rows: tuple[NumbersRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pictured:
    """An output at its worst control input."""

    target: TargetName
    picture: ErrorPicture
    comparison: Comparison
    point: Point


def model_charts(measured: Measured) -> ModelCharts:
    """All charts of a model for which there are numbers."""
    contract, observation = measured.contract, measured.observation
    points = {planned.name: target_points(measured, planned.name) for planned in contract.targets}
    found = [errors_chart(observation.control_inputs, points, contract.name)]
    found += [sizes_chart(dim.name, observation.control_inputs, points) for dim in contract.dims]
    worst = max(_pictured(measured), key=lambda it: (it.point.over, it.point.ratio), default=None)
    if worst is not None:
        name = f"{worst.picture.output} on {worst.target} at {worst.picture.case}"
        found.append(spread_chart(worst.picture, worst.comparison, worst.point, name))
        axes = _axis_names(contract, worst.comparison)
        found.append(heat_chart(worst.picture, worst.comparison, worst.point, worst.target, axes))
    found += [graph_chart(trace, name) for name, trace in _traces(measured)]
    return ModelCharts(
        model=contract.name,
        charts=tuple(chart for chart in found if chart is not None),
        targets=tuple(target for target, seen in points.items() if seen),
        rows=_rows({target: seen for target, seen in points.items() if seen}),
    )


def _traces(measured: Measured) -> Iterator[tuple[str, NodeTrace]]:
    """The first output of each target whose graph was looked into."""
    for target in measured.observation.targets:
        traced = [(each, each.trace) for each in target.inspections if each.trace is not None]
        yield from ((f"{each.output} on {target.target} at {each.case}", trace) for each, trace in traced[:1])


def _pictured(measured: Measured) -> Iterator[Pictured]:
    leaves = {(leaf.target, leaf.export, leaf.case, leaf.output): leaf for leaf in measured.leaves}
    for target in measured.observation.targets:
        for picture in target.pictures:
            leaf = leaves.get((target.target, target.export, picture.case, picture.output))
            if leaf is not None and _fits(picture, leaf.comparison):
                point = output_point(leaf)
                yield Pictured(target=target.target, picture=picture, comparison=leaf.comparison, point=point)


def _fits(picture: ErrorPicture, comparison: Comparison) -> bool:
    """Whether the picture matches this output: results may come from an untrusted run."""
    shape, axes = comparison.expected_shape, picture.axes
    is_placed = len(picture.where) == len(shape) and all(0 <= i < n for i, n in zip(picture.where, shape, strict=True))
    if not (is_placed and all(0 <= axis < len(shape) for axis in axes)):
        return False
    # An output with one axis is one row.
    lengths = (1, 1, *(shape[axis] for axis in axes))[-2:]
    is_cut = 0 < picture.columns <= min(lengths[1], MOST_CELLS) and len(picture.grid) % picture.columns == 0
    is_cut = is_cut and 0 < len(picture.grid) // picture.columns <= min(lengths[0], MOST_CELLS)
    return is_cut and len(axes) in (1, 2) and all(0 <= n < MOST_ENTRIES for n in (picture.equal, *picture.unequal))


def _axis_names(contract: ModelContract, comparison: Comparison) -> tuple[str, ...]:
    """`axis 0 (batch)` if the contract declares the output's shape."""
    promised = next((output.shape for output in contract.outputs if output.name == comparison.output), None)
    rank = len(comparison.expected_shape)
    sizes: Sequence[object] = promised if promised is not None and len(promised) == rank else [""] * rank
    words = [str(size) for size in sizes]
    return tuple(
        f"axis {axis} ({word})" if word and not word.isdigit() else f"axis {axis}" for axis, word in enumerate(words)
    )


def _rows(points: Mapping[TargetName, Sequence[Point]]) -> tuple[NumbersRow, ...]:
    by_case: dict[str, dict[TargetName, Point]] = {}
    for target, seen in points.items():
        for point in seen:
            by_case.setdefault(point.case, {})[target] = point
    return tuple(
        NumbersRow(case=case, points=tuple(found.get(target) for target in points)) for case, found in by_case.items()
    )
