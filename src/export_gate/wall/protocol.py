"""The JSON lines that cross the wall: requests one way, events the other.

An event carries one fact: set a field of an observation, append to a field, or report where the work is.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

from export_gate.wall.codec import decode, encode
from export_gate.wall.errors import UserError
from export_gate.wall.request import PROTOCOL, AnyRequest, ReplayRequest, Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line from the worker."""

    op: Literal["set", "add", "at", "started", "ended", "broke", "answer", "unusable"]
    """`at`: work began at `field` (a stage); `broke`: the gate's own code failed on the model, its traceback is in the
    log; `answer`: of a question; `unusable`: the worker cannot start."""
    model: str = ""
    """Empty for facts about the run."""
    target: str = ""
    """Target key (`onnx`, or `onnx@batch=1` for a separate export); empty for facts about the model."""
    field: str = ""
    value: object = None


def event_line(event: Event) -> bytes:
    """The event as one line of UTF-8 JSON."""
    # `encode` leaves no NaN; json would write one as a literal that is not JSON, so let it raise.
    return json.dumps(encode(event), allow_nan=False, separators=(",", ":")).encode() + b"\n"


def numbered_line(event: Event, number: int, token: bytes = b"") -> bytes:
    """The event as one line that says which one of its sender's it is, so that the loss of one is noticed."""
    return b"%s%d %s" % (token, number, event_line(event))


def read_numbered(line: bytes, token: bytes = b"") -> tuple[int, Event] | None:
    """The event of a numbered line, with its number; bytes before the token were written by somebody else.

    None for a line that holds no event, or a damaged one.
    """
    # Project code may have written to the same pipe without a line end.
    _, mark, body = line.partition(token) if token else (b"", b"mark", line)
    number, _, text = body.partition(b" ")
    try:
        return (int(number), parse_event(text)) if mark else None
    except ValueError:
        return None


def parse_event(line: bytes) -> Event:
    """The event of one line.

    Raises:
        ValueError: the line is not an event, e.g. other code printed it.
    """
    return decode(Event, json.loads(line))


def request_line(request: AnyRequest) -> bytes:
    """The request as one line of UTF-8 JSON."""
    return json.dumps(encode(request), allow_nan=False).encode() + b"\n"


def parse_request(line: bytes) -> AnyRequest:
    """The request of one line.

    Raises:
        UserError: the driver is of another version.
        ValueError: the line is not a request.
    """
    asked = json.loads(line)
    # Before decoding, which would fail on another version's fields with a message that does not help.
    if asked["protocol"] != PROTOCOL:
        raise UserError(f"the worker speaks protocol {PROTOCOL}, the driver {asked['protocol']}: reinstall export-gate")
    return decode(Request, asked) if asked["kind"] == "models" else decode(ReplayRequest, asked)
