"""Show worker events as live progress on a terminal, and as plain lines elsewhere; always on standard error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from export_gate.cli.remaining import Remaining
from export_gate.wall.protocol import Event

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn, TaskID

Print = Callable[[str], None]


@dataclass(slots=True)
class PlainProgress:
    """One line when a model's eager reference, its export and each target begin, and one when it is done."""

    write: Print
    seen: set[tuple[str, str]] = field(default_factory=set)

    def __call__(self, event: Event) -> None:
        """Print the line of the event, if it has one."""
        if event.op == "at" and (event.model, event.target or event.field) not in self.seen:
            self.seen.add((event.model, event.target or event.field))
            if event.target or event.field in ("eager", "export"):
                self.write(f"{event.model}: {event.target or event.field}")
        elif event.op == "set" and event.field in ("failure", "problem"):
            self.write(f"{event.model}: {event.target or 'model'} ended early")
        elif event.op == "ended":
            self.write(f"{event.model}: observed")


@dataclass(slots=True)
class Line:
    """One model in work."""

    task: TaskID
    targets: int
    remaining: Remaining
    planned: int | None = None
    """Control inputs, once the worker has chosen them."""
    stage: str = "load"
    begun: set[str] = field(default_factory=set)
    """Control inputs that this stage has begun."""
    run: int = 0
    """Control inputs that earlier stages have run."""

    def move(self, stage: str, case: str) -> None:
        """Note where the work is now."""
        if stage != self.stage:
            self.run += len(self.begun) if self._runs_inputs else 0
            self.stage, self.begun = stage, set()
        self.begun |= {case} if case else set()
        if self.planned:
            now = max(0, len(self.begun) - 1) if self._runs_inputs else 0
            # Eager and each target run them all; separate exports and sweeps run more, so it may be too much.
            self.remaining.note(min(0.99, (self.run + now) / (self.planned * (self.targets + 1))))

    @property
    def _runs_inputs(self) -> bool:
        return self.stage == "eager" or self.stage.endswith(" run")

    @property
    def counts(self) -> tuple[int, int | None]:
        """(control inputs done, control inputs planned) of the stage; no total where it does not run them."""
        # Minus one throughout: the last one begun is still running.
        if not self.begun or self.planned is None:
            return max(0, len(self.begun) - 1), None
        return min(len(self.begun) - 1, self.planned), self.planned  # a sweep of sizes goes on after the planned ones


@dataclass(slots=True)
class LiveProgress:
    """A line for each model in work, redrawn in place: stage, control inputs done of planned, time, time left.

    The first line counts the models. A model that is done leaves the screen, so that the others fit on it.
    """

    progress: Progress
    targets: Mapping[str, int]
    """Model -> how many targets it has."""
    last_s: Mapping[str, float] = field(default_factory=dict)
    """Model -> how long it took last, if that is known."""
    lines: dict[str, Line] = field(default_factory=dict)
    total: TaskID = field(init=False)

    def __post_init__(self) -> None:
        count = len(self.targets)
        self.total = self.progress.add_task("models", total=count, what="start the worker", count=f"0/{count}", left="")

    def __call__(self, event: Event) -> None:
        """Redraw the model's line."""
        # A model starts again after its process died in a target.
        if event.op == "started" and event.model not in self.lines:
            self._start(event.model)
        line = self.lines.get(event.model)
        if line is None:
            return
        if event.op == "set" and event.field == "controls" and isinstance(event.value, dict):
            line.planned = len(event.value.get("inputs", ()))
        elif event.op == "set" and event.field in ("failure", "problem"):
            what = f"{event.model}: {event.target or 'model'} ended early"
            self.progress.console.print(_cell(what), highlight=False)
        elif event.op == "at":
            line.move(" ".join(part for part in (event.target, event.field) if part), str(event.value or ""))
            done, planned = line.counts
            count = "" if planned is None else f"{done}/{planned}"
            self.progress.update(line.task, what=_cell(line.stage), count=count, completed=done, total=planned)
        elif event.op == "ended":
            self._end(event.model, line)

    def _start(self, model: str) -> None:
        self.progress.update(self.total, what="")
        remaining = Remaining(last_s=self.last_s.get(model))
        task = self.progress.add_task(_cell(model), total=None, what="load", count="", left=remaining)
        self.lines[model] = Line(task=task, targets=self.targets.get(model, 1), remaining=remaining)

    def _end(self, model: str, line: Line) -> None:
        self.progress.remove_task(line.task)
        del self.lines[model]
        self.progress.advance(self.total)
        done = int(self.progress.tasks[0].completed)
        self.progress.update(self.total, count=f"{done}/{len(self.targets)}")


def columns() -> tuple[ProgressColumn, ...]:
    """What a line shows: name, time, the control inputs of the stage as a bar and as a count, stage, and time left."""
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn

    return (
        SpinnerColumn(finished_text=" "),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[count]}", justify="right"),
        TextColumn("{task.fields[what]}"),
        TextColumn("{task.fields[left]}", style="dim"),
    )


def _cell(text: str) -> str:
    """The text without rich's markup and control characters."""
    from rich.markup import escape

    return escape("".join(character if character.isprintable() else "?" for character in text)[:80])
