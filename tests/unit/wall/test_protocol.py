"""Lines that cross the wall."""

from __future__ import annotations

import pytest

from export_gate.wall.contract import target_key
from export_gate.wall.protocol import Event, event_line, parse_event, parse_request, request_line
from export_gate.wall.request import PROTOCOL, Describe, ListControls, Observe, Request, Task, WriteKit


def test_event_is_one_line():
    """Whatever text it has, an event is one line of ASCII."""
    event = Event(op="set", model="m", field="printed", value="two\nlines \u2028 and \udcff")
    line = event_line(event)
    assert (line.count(b"\n"), line.endswith(b"\n"), line.isascii()) == (1, True, True)
    assert parse_event(line).value == "two\nlines \u2028 and \\udcff"


@pytest.mark.parametrize(
    "task",
    [Observe(), ListControls(), ListControls(show="mid", save="/tmp/x.npz"), Describe(), WriteKit(folder="/tmp/k")],
)
def test_request_comes_back(task: Task):
    """The request is what was sent, and so is its task."""
    request = Request(jobs=(), parallel=2, log_folder="/tmp/x", task=task)
    assert request.protocol == PROTOCOL
    assert parse_request(request_line(request)) == request


@pytest.mark.parametrize(
    "line", [b"", b"hello\n", b"{}\n", b'{"op": "rm"}\n', b"[1]\n", b"\xff\n", b'{"op": "set", "x": 1}\n']
)
def test_other_lines_are_no_events(line: bytes):
    """What a library prints is refused with a ValueError."""
    with pytest.raises(ValueError):
        parse_event(line)


@pytest.mark.parametrize(
    ("separate", "key"),
    [({}, "onnx"), ({"batch": 1}, "onnx@batch=1"), ({"seq": 2, "batch": 1}, "onnx@batch=1,seq=2")],
)
def test_target_key_names_the_export(separate: dict[str, int], key: str):
    """Each export of a target has one key, whatever the order of its dims."""
    assert target_key("onnx", separate) == key
