"""Facts to event lines on a descriptor of their own, which nothing a model prints can reach by accident."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from export_gate.codec import encode
from export_gate.observation import Failure, Stage
from export_gate.protocol import Event, event_line, parse_event


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """Where one worker process writes the events of one model."""

    descriptor: int
    model: str = ""
    token: bytes = b""
    """Stands before every event, so that a stray write is not taken for one; empty where nobody else can write."""
    numbers: Iterator[int] = field(default_factory=count)
    """Numbers the events behind a token, so that the loss of one is noticed."""

    def send(self, event: Event) -> None:
        """Write the event whole."""
        prefix = b"%s%d " % (self.token, next(self.numbers)) if self.token else b""
        write_all(self.descriptor, prefix + event_line(event))

    def at(self, stage: Stage, *, target: str = "", case: str = "") -> None:
        """Say where the work is, so that a death or a timeout has a place."""
        self.send(Event(op="at", model=self.model, target=target, field=stage, value=case))

    def set(self, field: str, value: Any, *, target: str = "") -> None:
        """Set a field of the model's (or the target's) observation."""
        self.send(Event(op="set", model=self.model, target=target, field=field, value=encode(value)))

    def add(self, field: str, value: Any, *, target: str) -> None:
        """Append to a field of the target's observation."""
        self.send(Event(op="add", model=self.model, target=target, field=field, value=encode(value)))

    def fail(self, failure: Failure, *, target: str = "") -> None:
        """Say why the model (or the target) ended early."""
        self.set("failure", failure, target=target)


def read_numbered(line: bytes, token: bytes) -> tuple[int, Event] | None:
    """The event behind the token, with its number; bytes before the token were written by somebody else.

    None for a line that holds no event, or a damaged one.
    """
    _, mark, body = line.partition(token)
    number, _, text = body.partition(b" ")
    try:
        return (int(number), parse_event(text)) if mark else None
    except ValueError:
        return None


def write_all(descriptor: int, line: bytes) -> None:
    """`os.write` until everything is written."""
    view = memoryview(line)
    while view:
        view = view[os.write(descriptor, view) :]
