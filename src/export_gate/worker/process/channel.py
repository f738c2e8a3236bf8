"""Write facts as event lines to a separate descriptor, which a model's output cannot reach by accident."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from export_gate.wall.codec import encode
from export_gate.wall.observation import Failure, Stage
from export_gate.wall.protocol import Event, numbered_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """Where one worker process writes the events of one model."""

    descriptor: int
    model: str = ""
    token: bytes = b""
    """Stands before every event, so that a stray write is not taken for one; empty if nobody else has the pipe."""
    numbers: Iterator[int] = field(default_factory=count)
    """Numbers the events, so that a lost, repeated or inserted one is noticed."""

    def send(self, event: Event) -> None:
        """Write the event whole."""
        write_all(self.descriptor, numbered_line(event, next(self.numbers), self.token))

    def at(self, stage: Stage, *, target: str = "", case: str = "") -> None:
        """Report the current stage, so that a death or a timeout can be located."""
        self.send(Event(op="at", model=self.model, target=target, field=stage, value=case))

    def set(self, field: str, value: Any, *, target: str = "") -> None:
        """Set a field of the model's (or the target's) observation."""
        self.send(Event(op="set", model=self.model, target=target, field=field, value=encode(value)))

    def add(self, field: str, value: Any, *, target: str) -> None:
        """Append to a field of the target's observation."""
        self.send(Event(op="add", model=self.model, target=target, field=field, value=encode(value)))

    def fail(self, failure: Failure, *, target: str = "") -> None:
        """Report why the model (or the target) ended early."""
        self.set("failure", failure, target=target)


def write_all(descriptor: int, line: bytes) -> None:
    """`os.write` until everything is written."""
    # A pipe takes what fits; an event may be longer.
    view = memoryview(line)
    while view:
        view = view[os.write(descriptor, view) :]
