"""Events as progress."""

from __future__ import annotations

import io

from rich.console import Console
from rich.progress import Progress, TextColumn

from export_gate.cli.progress import LiveProgress, PlainProgress
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
    """Each step of a model once, early ends by name; nothing for the rest."""
    lines: list[str] = []
    progress = PlainProgress(lines.append)
    for event in EVENTS:
        progress(event)
    assert lines == ["m: eager", "m: export", "m: onnx", "m: onnx ended early", "m: model ended early", "m: observed"]


def test_live_progress_shows_where_each_model_is():
    """One line per model with target, stage and case; names are shown as they are, without markup or control codes."""
    progress = Progress(
        TextColumn("{task.description}"), TextColumn("{task.fields[what]}"), console=Console(file=io.StringIO())
    )
    live = LiveProgress(progress)
    name = "[red]m\x1b[2J"
    live(Event(op="started", model=name, value=1))
    live(Event(op="started", model=name, value=2))
    live(Event(op="at", model=name, target="onnx", field="run", value="a[bold]b@batch=2"))
    live(Event(op="at", model="unheard of", field="eager"))
    (task,) = progress.tasks
    assert (task.description, task.fields["what"]) == ("\\[red]m?[2J", "onnx run a\\[bold]b@batch=2")
    live(Event(op="ended", model=name))
    assert (task.fields["what"], task.finished) == ("observed", True)
