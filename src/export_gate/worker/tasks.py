"""Map a request to the code that answers it: the replay of a kit, or a task for each model in its own process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from export_gate.wall.errors import UserError
from export_gate.wall.protocol import Event, parse_request
from export_gate.wall.request import Describe, ListControls, MeasureStrength, Observe, ReplayRequest, Request, WriteKit
from export_gate.worker.process.channel import Channel
from export_gate.worker.process.children import reserve_stdout

if TYPE_CHECKING:
    from export_gate.wall.contract import Job


def main(arguments: list[str]) -> int:
    """Serve the one request on standard input; events leave on what was standard output."""
    # First, before anything can print: standard output is the event pipe.
    channel = Channel(descriptor=reserve_stdout())
    line = sys.stdin.buffer.readline()
    if not line:
        return 0
    try:
        request = parse_request(line)
    except UserError as error:
        channel.send(Event(op="unusable", value=error.text))
        return 0
    match request:
        case ReplayRequest():
            from export_gate.worker.replay.replay import replay  # imports no torch

            replay(request, channel)
            return 0
        case Request():
            from export_gate.worker.process.server import serve

            return serve(request, channel, work, is_child=arguments == ["--child"])


def work(job: Job, request: Request, channel: Channel) -> None:
    """Do what the request asks for one job."""
    # Each import stays in its case: a process loads only what its task needs, and what a task needs is slow to load.
    match request.task:
        case Observe():
            from export_gate.worker.study.engine import observe_model

            observe_model(job, channel, task=request.task)
        case ListControls():
            from export_gate.worker.study.listing import list_controls

            list_controls(job, request.task, channel)
        case Describe():
            from export_gate.worker.guess.describe import describe_forward

            describe_forward(job, request.task, channel)
        case WriteKit():
            from export_gate.worker.study.kit_data import write_kit

            write_kit(job, Path(request.task.folder), channel)
        case MeasureStrength():
            from export_gate.worker.study.strength import measure_strength

            measure_strength(job, request.task, channel)
        case _:
            _never(request.task)


def _never(task: NoReturn) -> NoReturn:
    """Stand in for `typing.assert_never`, which Python 3.10 does not have."""
    raise AssertionError(task)
