"""Events as progress."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from rich.progress import Progress

from export_gate.cli.progress import LiveProgress, PlainProgress, columns
from export_gate.cli.remaining import Remaining
from export_gate.wall.protocol import Event

EVENTS = (
    Event(op="set", field="environment", value={}),
    Event(op="started", model="m", value=1),
    Event(op="at", model="m", field="model"),
    Event(op="at", model="m", field="eager", value="normal-1"),
    Event(op="at", model="m", field="eager", value="normal-2"),
    Event(op="at", model="m", field="export"),
    Event(op="at", model="m", target="onnx", field="load"),
    Event(op="at", model="m", target="onnx", field="run", value="normal-1"),
    Event(op="set", model="m", target="onnx", field="failure", value={}),
    Event(op="set", model="m", field="problem", value={}),
    Event(op="ended", model="m"),
)


def test_plain_progress_is_a_line_per_step():
    """Each step of a model is shown once, early ends by name, and nothing else."""
    lines: list[str] = []
    progress = PlainProgress(lines.append)
    for event in EVENTS:
        progress(event)
    assert lines == ["m: eager", "m: export", "m: onnx", "m: onnx ended early", "m: model ended early", "m: observed"]


def live(models: int = 1) -> tuple[LiveProgress, Callable[[], list[tuple[str, str, str]]], io.StringIO]:
    """Live progress, what its lines say (name, stage, count), and what is printed above them."""
    printed = io.StringIO()
    progress = Progress(*columns(), console=Console(file=printed), auto_refresh=False)

    def lines() -> list[tuple[str, str, str]]:
        return [(task.description, task.fields["what"], task.fields["count"]) for task in progress.tasks]

    return LiveProgress(progress, dict.fromkeys("mno"[:models], 2)), lines, printed


def test_live_progress_counts_control_inputs():
    """One line per model: its stage, and how many of the planned control inputs are done in it."""
    show, lines, _ = live(models=2)
    assert lines() == [("models", "start the worker", "0/2")]
    show(Event(op="started", model="m", value=1))
    assert lines() == [("models", "", "0/2"), ("m", "load", "")]
    show(Event(op="set", model="m", field="controls", value={"inputs": [{}, {}, {}]}))
    seen = []
    for target, stage, case in [
        ("", "eager", ""), ("", "eager", "a"), ("", "eager", "a"), ("", "eager", "b"), ("", "export", ""),
        ("onnx", "convert", ""), ("onnx", "run", "a"), ("onnx", "run", "b"), ("onnx", "run", "c"), ("pt2", "run", "a"),
    ]:  # fmt: skip
        show(Event(op="at", model="m", target=target, field=stage, value=case))
        seen.append(" ".join(lines()[1][1:]))
    assert seen == [
        "eager ", "eager 0/3", "eager 0/3", "eager 1/3", "export ",
        "onnx convert ", "onnx run 0/3", "onnx run 1/3", "onnx run 2/3", "pt2 run 0/3",
    ]  # fmt: skip
    show(Event(op="ended", model="m"))
    assert lines() == [("models", "", "1/2")]


def test_live_progress_says_what_ended_early():
    """A failed target leaves a permanent line above the redrawn ones."""
    show, lines, printed = live()
    show(Event(op="started", model="m", value=1))
    show(Event(op="set", model="m", target="onnx", field="failure", value={}))
    show(Event(op="set", model="m", field="problem", value={}))
    assert printed.getvalue().splitlines() == ["m: onnx ended early", "m: model ended early"]
    assert len(lines()) == 2


def test_live_progress_shows_names_as_they_are():
    """Markup and control codes in a name have no effect; a model that starts again keeps its line."""
    show, lines, printed = live()
    name = "[red]m\x1b[2J"
    show(Event(op="started", model=name, value=1))
    show(Event(op="started", model=name, value=2))
    show(Event(op="at", model=name, target="onnx@[bold]", field="run", value="a[bold]b@batch=2"))
    show(Event(op="at", model="unheard of", field="eager"))
    assert lines()[1:] == [("\\[red]m?[2J", "onnx@\\[bold] run", "")]
    show(Event(op="set", model=name, field="failure", value={}))
    assert printed.getvalue() == "[red]m?[2J: model ended early\n"


def estimates(last_s: float | None, shares: list[tuple[float, float]]) -> list[tuple[float | None, float | None]]:
    """The seconds left before and after each note of (seconds later, share done)."""
    now = [0.0]
    remaining = Remaining(last_s=last_s, clock=lambda: now[0])
    found = []
    for later, share in shares:
        now[0] += later
        before = remaining.left_s
        remaining.note(share)
        found.append((before, remaining.left_s))
    return found


@pytest.mark.parametrize("last_s", [None, 0.0, 10.0, 1e4])
@settings(max_examples=100, deadline=None, database=None, derandomize=True)
@given(shares=st.lists(st.tuples(st.floats(0, 1e4), st.floats(0, 0.99)), max_size=20))
def test_the_time_left_is_never_negative_and_never_leaps_up(last_s: float | None, shares: list[tuple[float, float]]):
    """Whatever the worker reports, in whatever order."""
    for before, after in estimates(last_s, shares):
        assert after is None or after >= 0
        assert before is None or after is None or after <= before * 1.25 + 1.001


def test_the_time_left_is_that_of_the_last_run_then_of_the_rate():
    """A model that takes as long as last time counts down; one that is new is estimated once some inputs are done."""
    assert [after for _, after in estimates(10.0, [(0.0, 0.0), (4.0, 0.4), (6.0, 0.99)])] == [
        10.0,
        6.0,
        pytest.approx(0.1),
    ]
    assert [after for _, after in estimates(None, [(1.0, 0.01), (1.0, 0.2)])] == [None, 8.0]
    assert [after for _, after in estimates(1.0, [(5.0, 0.5)])] == [pytest.approx(1.0)]


def test_the_time_left_is_written_when_a_line_is_drawn():
    """It counts down between two events, and disappears when it has run out."""
    now = [0.0]
    remaining = Remaining(last_s=75.0, clock=lambda: now[0])
    shown = []
    for now[0] in (0.0, 14.6, 74.0, 74.9, 80.0):
        shown.append(f"{remaining}")
    assert shown == ["1:15 left", "1:00 left", "0:01 left", "", ""]
    assert f"{Remaining()}" == ""
