"""Turn a request into numbered events: start the worker, follow it, leave no process behind. The wall's left side."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from export_gate.run.environment import worker_environment
from export_gate.run.interpreter import why_no_python
from export_gate.wall.errors import GateError, UserError
from export_gate.wall.protocol import Event, read_numbered, request_line
from export_gate.wall.python import FLAGS
from export_gate.wall.request import AnyRequest, ReplayRequest

WORKER = Path(__file__).parents[1] / "worker" / "__main__.py"
START_S = 300.0
"""How long the worker may take to import the project's packages, in seconds."""
STOP_S = 5.0
"""How long the worker may take to stop its children, in seconds."""
STDERR_CHARACTERS = 2000

Listener = Callable[[Event], None]
"""Called with every event as it arrives."""


@dataclass(slots=True, kw_only=True)
class Conversation:
    """A worker and its progress."""

    python: Path
    process: subprocess.Popen[bytes]
    errors: IO[bytes]
    is_ready: bool = False
    """Whether it has imported what it needs."""
    groups: dict[str, int] = field(default_factory=dict)
    """Models that are being worked on -> their process groups."""
    has_begun: bool = False
    """Whether it has begun a first stage of a model; from then on, a model may be what kills it."""
    overran: bool = False
    status: int = 0

    @property
    def printed(self) -> str:
        """The end of what the worker printed."""
        self.errors.seek(0)
        return self.errors.read().decode("utf-8", "replace")[-STDERR_CHARACTERS:].strip()


def converse(request: AnyRequest, python: Path, environment: Mapping[str, str], listener: Listener) -> int:
    """Have the worker do the request under that interpreter; every event goes to the listener.

    Returns:
        0, or the negative number of the signal that killed the worker while it replayed a kit in its own process.

    Raises:
        UserError: the interpreter lacks a package, is too old, or does not start.
        GateError: the worker broke down.
    """
    with tempfile.TemporaryFile() as errors, _started(python, environment, errors) as worker:
        try:
            _send(worker, request)
            with _bounded_start(worker):
                _follow(worker, listener)
            _end(worker)
        except BaseException:
            _stop(worker)
            raise
        finally:
            # Each child is a session of its own, which outlives a worker that was killed.
            _kill_groups(worker)
        # First: a worker that was killed for being late looks like one that broke down.
        if worker.overran:
            raise _overrun(python, request)
        if worker.status == 0 and worker.groups:
            raise GateError(f"the worker ended without a report on {', '.join(sorted(worker.groups))}")
        was_killed = isinstance(request, ReplayRequest) and worker.has_begun and worker.status < 0
        if not was_killed and (worker.status or not worker.is_ready):
            raise _breakdown(worker, "" if worker.is_ready else why_no_python(python, environment))
    return worker.status


@contextmanager
def _started(python: Path, environment: Mapping[str, str], errors: IO[bytes]) -> Iterator[Conversation]:
    try:
        process = subprocess.Popen(
            [str(python), *FLAGS, str(WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=worker_environment(environment),
            # A session of its own: Ctrl-C reaches only the driver, which then stops the worker in order.
            start_new_session=True,
        )
    except OSError as error:
        raise UserError(f"{python} does not run Python: {error.strerror or error}") from error
    with process:
        yield Conversation(python=python, process=process, errors=errors)


def _send(worker: Conversation, request: AnyRequest) -> None:
    """Write the request from a thread of its own: a large one would block while the worker imports.

    Where the worker is gone already, its exit status says more than the broken pipe.
    """
    assert worker.process.stdin is not None
    stream = worker.process.stdin

    def write() -> None:
        with suppress(OSError, ValueError), stream:
            stream.write(request_line(request))

    threading.Thread(target=write, daemon=True).start()


def _follow(worker: Conversation, listener: Listener) -> None:
    """Pass on every event until the worker closes its end.

    Raises:
        UserError: the worker cannot start in that interpreter.
        GateError: one is missing, repeated or put in by somebody else: what was taken in may not be what was seen.
    """
    assert worker.process.stdout is not None
    wanted = 0
    for line in worker.process.stdout:
        numbered = read_numbered(line)
        if numbered is None:
            continue  # printed while the interpreter started
        number, event = numbered
        if number != wanted:
            raise GateError(f"the worker's events were damaged: expected number {wanted}, got {number}")
        wanted += 1
        _note(worker, event)
        listener(event)


def _note(worker: Conversation, event: Event) -> None:
    match event.op:
        case "unusable":
            raise UserError(str(event.value))
        case "started":
            worker.groups[event.model] = int(str(event.value))
        case "ended":
            worker.groups.pop(event.model, None)
        case "set" if not event.model:  # the environment
            worker.is_ready = True
        case "at":
            worker.has_begun = True
        case _:
            pass


@contextmanager
def _bounded_start(worker: Conversation) -> Iterator[None]:
    """Kill a worker that hangs before its first event."""

    def stop_if_silent() -> None:
        if not worker.is_ready and worker.process.poll() is None:
            worker.overran = True
            with suppress(OSError):
                # Its group: the import that hangs may have started processes, which would keep standard output open.
                os.killpg(worker.process.pid, signal.SIGKILL) if hasattr(os, "killpg") else worker.process.kill()

    timer = threading.Timer(START_S, stop_if_silent)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _overrun(python: Path, request: AnyRequest) -> UserError:
    modules = ("onnxruntime", "onnx") if isinstance(request, ReplayRequest) else ("torch", "torch.export", "torch.onnx")
    return UserError(
        f"{python} (the project's interpreter) did not import {modules[0]} and its dependencies within {START_S:g} s",
        f'find out where it hangs: `{python} -X faulthandler -c "import {", ".join(modules)}"`',
    )


def _end(worker: Conversation) -> None:
    """Wait for the worker; one that has said everything and does not end is stopped."""
    try:
        worker.status = worker.process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        # A library's thread may keep the process alive; a report that is complete counts all the same.
        has_said_everything = not worker.groups
        _stop(worker)
        worker.status = 0 if has_said_everything else worker.process.returncode


def _stop(worker: Conversation) -> None:
    """Ask the worker to stop, then kill it and what it started."""
    with suppress(OSError):
        worker.process.terminate()
    try:
        worker.process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        worker.process.kill()
        worker.process.wait()
    _kill_groups(worker)


def _kill_groups(worker: Conversation) -> None:
    for pid in worker.groups.values():
        if hasattr(os, "killpg"):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)


def _breakdown(worker: Conversation, why_no_python: str) -> UserError | GateError:
    """The user's mistake if the file is not Python or is too old; else an error of the gate."""
    printed, status = worker.printed, worker.status
    # The words of `worker/__main__.py`: so early, standard error is the only channel.
    if "needs Python 3.10 or newer" in printed:
        return UserError(printed)
    if why_no_python:
        return UserError(f"{worker.python} does not run Python: {why_no_python}")
    ended = f"killed by signal {-status}" if status < 0 else f"exit status {status}"
    return GateError(f"the worker under {worker.python} broke down ({ended}); it printed:\n{printed or '(nothing)'}")
