"""Worker events to live progress on a terminal, and to plain lines elsewhere; always on standard error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from export_gate.wall.protocol import Event

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

Print = Callable[[str], None]


@dataclass(slots=True)
class PlainProgress:
    """One line when a model starts, one per target, one when it is done."""

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
class LiveProgress:
    """A line per model that is at work, redrawn in place."""

    progress: Progress
    tasks: dict[str, TaskID] = field(default_factory=dict)

    def __call__(self, event: Event) -> None:
        """Redraw the model's line."""
        if event.op == "started" and event.model not in self.tasks:
            self.tasks[event.model] = self.progress.add_task(_cell(event.model), total=None, what="load")
        elif event.op == "at" and event.model in self.tasks:
            what = " ".join(str(part) for part in (event.target, event.field, event.value) if part)
            self.progress.update(self.tasks[event.model], what=_cell(what))
        elif event.op == "ended" and event.model in self.tasks:
            self.progress.update(self.tasks[event.model], what="observed", total=1, completed=1)


def _cell(text: str) -> str:
    """The text without rich's markup and control characters."""
    from rich.markup import escape

    return escape("".join(character if character.isprintable() else "?" for character in text)[:80])
