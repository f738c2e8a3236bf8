"""Pictures: what stands where, what stands out, and that no number breaks them."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import pytest
import report_samples as samples
from hypothesis import given, settings
from hypothesis import strategies as st

from export_gate.report.charts import shapes
from export_gate.report.charts.graph import graph_chart
from export_gate.report.charts.model import ModelCharts, model_charts
from export_gate.report.charts.record import Chart, Panel
from export_gate.report.charts.scale import log_scale, power_of_ten
from export_gate.rules.measure import measure
from export_gate.wall.contract import ModelContract, Tolerance, make_target
from export_gate.wall.nodes import NodePoint
from export_gate.wall.observation import AxisNorms, CaseResult, Comparison, ErrorPicture, ModelObservation, Structure


def drawn(
    cases: tuple[CaseResult, ...], pictures: tuple[ErrorPicture, ...] = (), contract: ModelContract | None = None
) -> ModelCharts:
    """The pictures of one model on one target."""
    seen = samples.target("onnx", 0.0, cases=cases, pictures=pictures)
    promised = contract or samples.contract("m", targets=(make_target("onnx"),))
    return model_charts(measure(promised, samples.model("m", (seen,))))


def case(error: float, name: str = "halves-1@batch=16", **changes: Any) -> CaseResult:
    """One control input, off by that much."""
    return CaseResult(case=name, outputs=(samples.comparison(error, **changes),))


def chart(charts: ModelCharts, title: str) -> Chart:
    """The picture whose title starts so."""
    return next(found for found in charts.charts if title in found.title)


def kinds(panel: Panel) -> dict[str, int]:
    """How many marks of each kind are drawn."""
    return {shape.kind: shape.d.count("M") for shape in panel.shapes}


def test_marks_say_what_happened():
    """A pass is a dot, a violation a cross, an exact result a square on the floor, no number a triangle on the roof."""
    cases = (
        case(1e-6, "normal-1@batch=2"),
        case(1e-3, "halves-1@batch=2"),
        case(0.0, "zeros-1@batch=2"),
        case(0.0, "low-1@batch=2", nonfinite_mismatched=3),
        CaseResult(case="high-1@batch=2", structure=Structure(expected=("a",), actual=("b",))),
    )
    (panel,) = chart(drawn(cases), "error against allowed").panels
    found = kinds(panel)
    assert (found["ok"], found["over"], found["zero"], found["fault"]) == (1, 2, 1, 2)  # a cross is two strokes
    assert found["allowed"] == 3


def test_the_worst_violation_is_named():
    """The picture shows the name of the worst control input."""
    (panel,) = chart(drawn((case(1e-3, "normal-1@batch=2"), case(1e-2, "low-1@batch=2"))), "error against").panels
    assert [words.text for words in panel.words if words.kind == "worst"] == ["low-1@batch=2"]


def test_larger_errors_stand_higher():
    """The vertical axis is logarithmic: each factor of ten is the same step up."""
    scale = log_scale([1e-6, 1e-2], start=100, end=20)
    assert [scale.at(10.0**power) for power in range(-6, -1)] == pytest.approx([100, 80, 60, 40, 20])
    assert (scale.at(1e-9), scale.at(1.0), scale.at(0.0), scale.at(math.nan)) == (100, 20, 100, 100)


@pytest.mark.parametrize(("power", "label"), [(-6, "10⁻⁶"), (0, "1"), (1, "10"), (12, "10¹²")])
def test_powers_are_written_as_people_do(power: int, label: str):
    """Axes are labelled with powers of ten."""
    assert power_of_ten(power) == label


def test_families_stand_together():
    """Control inputs of one family are neighbours, and the family's name stands below them."""
    charts = drawn(tuple(case(1e-6, name) for name in samples.CASES))
    panel = chart(charts, "error against").panels[-1]
    names = [words.text for words in panel.words if words.turn]
    assert names == list(samples.FAMILIES)


def test_each_size_has_its_worst():
    """The picture of a dim has the worst share of the tolerance at each size, and none where one size was run."""
    cases = (case(1e-6, "normal-1@batch=2"), case(1e-3, "halves-1@batch=2"), case(0.0, "normal-1@batch=16"))
    found = chart(drawn(cases), "Error per size of batch")
    assert found.summary == "onnx: batch=2 29x, batch=16 exact."
    assert [tick.label for tick in found.panels[0].x_ticks] == ["2", "16"]
    assert all("per size" not in chart_.title for chart_ in drawn(cases[:2]).charts)


def test_each_target_of_a_kind_has_a_mark_of_its_own():
    """Eight targets of one kind differ in mark or tone, and none is drawn as a target called like its kind."""
    names = ["onnx", *(f"onnx-{number}" for number in range(8))]
    targets = tuple(make_target("onnx", name=name) for name in names)
    seen = tuple(samples.target(name, 1e-6, cases=tuple(case(1e-6, n) for n in samples.CASES)) for name in names)
    charts = model_charts(measure(samples.contract("m", targets=targets), samples.model("m", seen)))
    entries = {entry.text: (entry.kind, entry.d) for entry in chart(charts, "Error per size of").legend}
    assert entries["onnx"][0] == "series onnx"
    assert len({entries[name] for name in names}) == len(names)


def test_the_histogram_tells_what_is_over():
    """Bars above the bound are marked, and a sentence counts their entries."""
    found = chart(drawn((case(3.1e-3),), (samples.picture(),)), "Error histogram")
    assert found.title == "Error histogram: logits on onnx at halves-1@batch=16"
    words = "17 of 24 entries are equal; the others differ by 1.7e-06 to 3.1e-03; 2 certainly over the 3.4e-05 allowed."
    assert found.summary == words
    assert kinds(found.panels[0]) == {"within": 2, "beyond-bar": 2, "hatch": 2, "equal": 1, "limit-line": 1}


def test_the_map_shows_the_worst_entry():
    """Cells are as dark as their share of the allowed error; those above it are hatched, and the worst has a ring."""
    found = chart(drawn((case(3.1e-3),), (samples.picture(),)), "Where it differs")
    assert found.title == "Where it differs: logits on onnx at halves-1@batch=16"
    assert found.summary == "7 of 24 cells differ. The largest difference is at [5, 1] of shape (8, 3)."
    assert (found.x_label, found.y_label) == ("axis 1, 3 long", "axis 0 (batch), 8 long")
    assert kinds(found.panels[0]) == {"equal-cell": 17, "heat-3": 4, "heat-5": 1, "hot-3": 2, "hatch": 2, "ring": 1}


def test_of_several_outputs_the_worst_is_drawn():
    """The histogram and the map are those of the output that is furthest over its bound."""
    worse = replace(samples.picture(), output="boxes")
    cases = (
        CaseResult(
            case="halves-1@batch=16", outputs=(samples.comparison(1e-3), samples.comparison(1e-2, output="boxes"))
        ),
    )
    assert "boxes" in chart(drawn(cases, (samples.picture(), worse)), "Error histogram").title


def test_bounds_of_each_index_colour_nothing():
    """If each index of an axis has its own bound, no single bound is drawn for all entries."""
    contract = samples.contract("m", targets=(make_target("onnx", tolerance=Tolerance(axis=1)),))
    norms = tuple(AxisNorms(index=i, max_abs_diff=3.1e-3, expected_max_abs=1.0) for i in range(3))
    charts = drawn((case(3.1e-3, per_axis=norms),), (samples.picture(),), contract)
    assert "limit-line" not in kinds(chart(charts, "Error histogram").panels[0])
    assert {entry.text for entry in chart(charts, "Where it differs").legend} >= {"up to 100% of the largest"}


@pytest.mark.parametrize(
    "change",
    [
        {"where": (9, 9)}, {"where": (1,)}, {"where": (-1, 0)}, {"axes": (0, 7)}, {"columns": 0}, {"columns": 5},
        {"grid": ()}, {"grid": (1.0,) * 9999, "columns": 3}, {"equal": -1}, {"unequal": (10**400,)}, {"axes": ()},
    ],
)  # fmt: skip
def test_a_map_that_fits_no_output_is_left_out(change: dict[str, Any]):
    """Results may be a stranger's: what cannot be a picture of the output is not drawn."""
    charts = drawn((case(3.1e-3),), (replace(samples.picture(), **change),))
    assert [found.title for found in charts.charts] == ["m: error against allowed at each control input"]


numbers = st.floats() | st.sampled_from([0.0, 5e-324, 1e308, -1.0, math.inf, math.nan])


@settings(max_examples=150)
@given(
    errors=st.lists(st.tuples(numbers, numbers), min_size=1, max_size=4),
    grid=st.lists(numbers, min_size=24, max_size=24),
    tolerance=st.tuples(numbers, numbers),
)
def test_no_number_breaks_a_picture(
    errors: list[tuple[float, float]], grid: list[float], tolerance: tuple[float, float]
):
    """Whatever the numbers are, every path is made of finite ones."""
    cases = tuple(
        case(error, name, expected_max_abs=scale) for name, (error, scale) in zip(samples.CASES, errors, strict=False)
    )
    picture = replace(samples.picture(), case=samples.CASES[0], grid=tuple(grid))
    atol, rtol = tolerance
    contract = samples.contract("m", targets=(make_target("onnx", tolerance=Tolerance(atol=atol, rtol=rtol)),))
    for found in drawn(cases, (picture,), contract).charts:
        for panel in found.panels:
            paths = "".join(shape.d for shape in panel.shapes)
            assert not re.search("nan|inf|e", paths)
            assert all(math.isfinite(words.x) and math.isfinite(words.y) for words in panel.words)


def test_marks_are_closed_paths():
    """Outlines end where they begin."""
    assert shapes.box(1, 2, 3, 4) == "M1 2h3v4h-3z"
    assert shapes.cross(5, 5, 1) == "M4 4l2 2M4 6l2 -2"
    assert shapes.diamond(5, 5, 2) == "M5 3l2 2l-2 2l-2 -2z"


def test_nothing_observed_has_no_pictures():
    """A model that ended before its targets has no pictures."""
    assert model_charts(measure(samples.contract("m"), ModelObservation(model="m"))).charts == ()


def test_a_comparison_without_numbers_is_told_in_words():
    """Other shapes and dtypes have no error to draw; the table says what they are."""
    other = Comparison(
        output="logits", expected_dtype="float32", actual_dtype="float64", expected_shape=(8, 3), actual_shape=(8, 3)
    )
    charts = drawn((CaseResult(case="normal-1@batch=2", outputs=(other,)),))
    assert [point.why for row in charts.rows for point in row.points if point] == ["float64, expected float32"]


def test_the_error_along_the_graph_is_drawn_up_to_the_node_that_is_wrong():
    """One dot for each node, and a line with a name at the guilty one."""
    seen = samples.target("onnx", 0.0, cases=(case(1e-3),), inspections=(samples.inspection(),))
    promised = samples.contract("m", targets=(make_target("onnx"),))
    drawing = chart(model_charts(measure(promised, samples.model("m", (seen,)))), "Error along the graph")
    (panel,) = drawing.panels

    assert kinds(panel)["series onnx"] == 7
    assert [words.text for words in panel.words] == ["linear_1"]
    assert drawing.title == "Error along the graph: logits on onnx at halves-1@batch=16"
    assert drawing.summary == ("7 nodes; the largest error, 2.2e-03, is at softmax. The first wrong one is linear_1.")


@pytest.mark.parametrize("errors", [(0.0, math.inf), (math.nan, 1e300), (1e-300, 0.0), (0.0, 0.0)])
def test_no_error_along_the_graph_breaks_the_chart(errors: tuple[float, ...]):
    """Results may come from anywhere, and a graph of one node has no chart."""
    trace = replace(samples.inspection().trace, guilty=None)
    pairs = tuple(NodePoint(name=str(number), error=error) for number, error in enumerate(errors))
    drawing = graph_chart(replace(trace, points=pairs), "x")

    assert drawing is not None
    assert all("nan" not in shape.d and "inf" not in shape.d for shape in drawing.panels[0].shapes)
    assert graph_chart(replace(trace, points=pairs[:1]), "x") is None
