"""Facts on their way out of a model's process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

import pytest

from export_gate.wall.protocol import Event, read_numbered
from export_gate.worker.process.channel import Channel

TOKEN = b"0123456789abcdef "


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """Read and write end."""
    reader, writer = os.pipe()
    yield reader, writer
    os.close(reader)
    os.close(writer)


def test_events_are_numbered_across_copies(pipe: tuple[int, int]):
    """Copies of a channel continue the numbers, so a loss is noticed whoever sent the event."""
    channel = Channel(descriptor=pipe[1], token=TOKEN)
    channel.send(Event(op="set", field="a"))
    replace(channel, model="m").set("b", 1)
    channel.send(Event(op="set", field="c"))
    lines = os.read(pipe[0], 65536).splitlines(keepends=True)
    found = [read_numbered(line, TOKEN) for line in lines]
    assert [(pair[0], pair[1].model, pair[1].field) for pair in found if pair] == [
        (0, "", "a"),
        (1, "m", "b"),
        (2, "", "c"),
    ]


def test_without_a_token_events_are_numbered_too(pipe: tuple[int, int]):
    """To the driver, lines have no token, but a lost or inserted event is noticed."""
    channel = Channel(descriptor=pipe[1], model="m")
    channel.at("eager", case="normal-1")
    channel.at("run")
    first, second = os.read(pipe[0], 65536).splitlines()
    assert first == b'0 {"op":"at","model":"m","target":"","field":"eager","value":"normal-1"}'
    assert read_numbered(second) == (1, Event(op="at", model="m", field="run", value=""))


@pytest.mark.parametrize("junk", [b"", b"printed by a library: ", b"\x00\xff", b"{}", TOKEN[:5]])
def test_junk_before_an_event_is_skipped(junk: bytes):
    """Text without a line end before an event does not hide the event."""
    assert read_numbered(junk + TOKEN + b'7 {"op":"ended","model":"m"}\n', TOKEN) == (7, Event(op="ended", model="m"))


@pytest.mark.parametrize(
    "line",
    [
        b"hello\n",
        b'{"op":"ended"}\n',
        TOKEN,
        TOKEN + b"\n",
        TOKEN + b"x {}\n",
        TOKEN + b'7 {"op":"en\n',
        TOKEN + b'{"op":"ended"}\n',
    ],
)
def test_other_lines_hold_no_event(line: bytes):
    """Lines without the token, and damaged ones, are dropped; the next number shows that one was lost."""
    assert read_numbered(line, TOKEN) is None


def test_large_events_are_written_whole(pipe: tuple[int, int]):
    """An event larger than the pipe arrives in one piece."""
    pid = os.fork()
    if pid == 0:
        Channel(descriptor=pipe[1], token=TOKEN).send(Event(op="set", value="x" * 500_000))
        os._exit(0)
    received = b""
    while not received.endswith(b"\n"):
        received += os.read(pipe[0], 65536)
    os.waitpid(pid, 0)
    numbered = read_numbered(received, TOKEN)
    assert numbered is not None
    assert numbered[1].value == "x" * 500_000
