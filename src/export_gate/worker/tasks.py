"""Map a request to the code that answers it: the replay of a kit, or a task for each model in its own process."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import NoReturn

from export_gate.wall.errors import UserError
from export_gate.wall.protocol import Event, parse_request
from export_gate.wall.request import Describe, ListControls, MeasureStrength, Observe, ReplayRequest, Request, WriteKit
from export_gate.worker.process.channel import Channel
from export_gate.worker.process.children import Work, reserve_stdout


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

            return serve(request, channel, work_for, is_child=arguments == ["--child"])


def work_for(request: Request) -> Work:
    """What does the request's task for one job, with all that it imports."""
    # Each import stays in its case: a process loads only what its task needs, and what a task needs is slow to load.
    match task := request.task:
        case Observe():
            from export_gate.worker.study.engine import observe_model

            return partial(observe_model, task=task)
        case ListControls():
            from export_gate.worker.study.listing import list_controls

            return partial(list_controls, task)
        case Describe():
            from export_gate.worker.guess.describe import describe_forward

            return partial(describe_forward, task)
        case WriteKit():
            from export_gate.worker.study.kit_data import write_kit

            return partial(write_kit, Path(task.folder))
        case MeasureStrength():
            from export_gate.worker.study.strength import measure_strength

            return partial(measure_strength, task)
        case _:
            return _never(task)


def _never(task: NoReturn) -> NoReturn:
    """Stand in for `typing.assert_never`, which Python 3.10 does not have."""
    raise AssertionError(task)
