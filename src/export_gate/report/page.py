"""Build what the HTML page shows in addition to the report: charts, and the environment as pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from export_gate.report.charts.model import ModelCharts, model_charts
from export_gate.report.record import STATES, Report, Row
from export_gate.report.results import Results
from export_gate.wall.words import count

MOST_PICTURED = 40
"""Most models with pictures on a page; each takes about 60 kB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Everything that the template needs."""

    report: Report
    pictures: tuple[ModelCharts, ...]
    """In the table's order."""
    left_out: str
    """How many models have no pictures here; empty if all have."""
    exact: tuple[str, ...]
    """Models without any difference, which have no charts."""
    environment: tuple[tuple[str, str], ...]


def build_page(results: Results, report: Report) -> Page:
    """The page of one run."""
    chosen = _pictured(report.rows)
    missing = len(report.rows) - len(chosen)
    order = {row.model: place for place, row in enumerate(report.rows)}
    worst_first = sorted(report.measured, key=lambda measured: order.get(measured.contract.name, 0))
    drawn = [model_charts(measured) for measured in worst_first if measured.contract.name in chosen]
    return Page(
        report=report,
        pictures=tuple(charts for charts in drawn if charts.charts),
        exact=tuple(charts.model for charts in drawn if charts.rows and not charts.charts),
        left_out=f"Omitted: pictures of the {count(missing, 'model')} with the best results." if missing else "",
        environment=_environment(results),
    )


def _pictured(rows: Sequence[Row]) -> set[str]:
    """The models with the worst results."""
    worst_first = sorted(rows, key=lambda row: (STATES.index(row.state), -_worst(row)))
    return {row.model for row in worst_first[:MOST_PICTURED]}


def _worst(row: Row) -> float:
    return max((cell.ratio for cell in row.cells if cell.ratio is not None), default=0.0)


def _environment(results: Results) -> tuple[tuple[str, str], ...]:
    seen = results.run.environment
    if seen is None:
        return ()
    machine = {"Python": seen.python, **seen.versions, "CPU": seen.cpu, "threads per process": str(seen.threads)}
    return tuple({**machine, "platform": seen.platform, "interpreter": seen.executable}.items())
