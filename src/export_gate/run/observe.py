"""A request to observations: starts the worker, follows its events, assembles what they say. The wall's left side."""

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
from typing import Any

from export_gate.run.interpreter import why_no_python, worker_environment
from export_gate.wall.codec import decode
from export_gate.wall.contract import Request
from export_gate.wall.errors import GateError, UserError
from export_gate.wall.observation import STAGES, RunObservation
from export_gate.wall.protocol import Event, read_numbered, request_line

WORKER = Path(__file__).parents[1] / "worker" / "__main__.py"
START_S = 300.0
"""How long the worker may take to import the project's packages, in seconds."""
STOP_S = 5.0
"""How long the worker may take to stop its children, in seconds."""
STDERR_CHARACTERS = 2000

Listener = Callable[[Event], None]
"""Told of every event as it comes."""


@dataclass(slots=True)
class Assembly:
    """Observations as nested JSON values, grown event by event."""

    environment: Any = None
    models: dict[str, dict[str, Any]] = field(default_factory=dict)
    targets: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    pids: dict[str, int] = field(default_factory=dict)
    """Process groups that are at work."""
    answers: list[Any] = field(default_factory=list)

    def apply(self, event: Event) -> None:
        """Take in one event.

        Raises:
            UserError: the worker cannot start in that interpreter.
        """
        match event.op:
            case "unusable":
                raise UserError(str(event.value))
            case "answer":
                self.answers.append(event.value)
            case "started":
                self.pids[event.model] = int(str(event.value))
                self.models.setdefault(event.model, {"model": event.model})
            case "ended":
                self.pids.pop(event.model, None)
            case "at":
                if event.target or event.model:
                    self._reach(event)
            case "set":
                if event.model:
                    self._record(event)[event.field] = event.value
                else:
                    self.environment = event.value
            case "add":
                self._record(event).setdefault(event.field, []).append(event.value)

    def _reach(self, event: Event) -> None:
        """Note the furthest stage; a look back at an earlier one does not undo it."""
        record = self._record(event)
        known = record.get("reached", event.field)
        record["reached"] = max(known, event.field, key=STAGES.index) if {known, event.field} <= set(STAGES) else known

    def _record(self, event: Event) -> dict[str, Any]:
        if not event.target:
            return self.models.setdefault(event.model, {"model": event.model})
        name = event.target.partition("@")[0]
        return self.targets.setdefault(event.model, {}).setdefault(event.target, {"target": name})

    def observation(self) -> RunObservation:
        """What was observed so far.

        Raises:
            GateError: the events do not make up a valid observation.
        """
        models = [
            {**fields, "targets": list(self.targets.get(name, {}).values())} for name, fields in self.models.items()
        ]
        try:
            return decode(RunObservation, {"environment": self.environment, "models": models})
        except ValueError as error:
            raise GateError(f"the worker sent something that is no observation: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What came over the wall."""

    run: RunObservation
    answers: tuple[Any, ...]


def observe(
    request: Request, python: Path, environment: Mapping[str, str], listener: Listener = lambda _: None
) -> Observed:
    """Have the worker do the request under the project's interpreter.

    Raises:
        UserError: the interpreter lacks torch or numpy, is too old, or does not start.
        GateError: the worker broke down.
    """
    assembly = Assembly()
    with tempfile.TemporaryFile() as errors, _worker(python, environment, errors) as process:
        try:
            _send(process, request)
            with _bounded_start(process, assembly) as overran:
                _follow(process, assembly, listener)
            status = _ended(process, assembly)
        except BaseException:
            stop(process, assembly)
            raise
        finally:
            _kill_groups(assembly)
        if overran:
            raise UserError(_overrun(python), _try_import(python))
        if status == 0 and assembly.pids:
            raise GateError(f"the worker ended without a word on {', '.join(sorted(assembly.pids))}")
        if status != 0 or assembly.environment is None:
            why = why_no_python(python, environment) if assembly.environment is None else ""
            raise _breakdown(python, status, _tail(errors), why)
    return Observed(run=assembly.observation(), answers=tuple(assembly.answers))


def _follow(process: subprocess.Popen[bytes], assembly: Assembly, listener: Listener) -> None:
    """Take in every event until the worker closes its end.

    Raises:
        GateError: one is missing, repeated or put in by somebody else: what was taken in may not be what was seen.
    """
    assert process.stdout is not None
    wanted = 0
    for line in process.stdout:
        numbered = read_numbered(line)
        if numbered is None:
            continue  # printed while the interpreter started
        number, event = numbered
        if number != wanted:
            raise GateError(f"the worker's facts were damaged on their way: expected number {wanted}, got {number}")
        wanted += 1
        assembly.apply(event)
        listener(event)


@contextmanager
def _bounded_start(process: subprocess.Popen[bytes], assembly: Assembly) -> Iterator[list[bool]]:
    """Kill a worker that hangs before its first event; whether that was done is in the list, which is empty if not."""
    overran: list[bool] = []

    def stop_if_silent() -> None:
        if assembly.environment is None and process.poll() is None:
            overran.append(True)
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL) if hasattr(os, "killpg") else process.kill()

    timer = threading.Timer(START_S, stop_if_silent)
    timer.daemon = True
    timer.start()
    try:
        yield overran
    finally:
        timer.cancel()


def _overrun(python: Path) -> str:
    return f"{python} (the project's interpreter) did not import torch and what it needs within {START_S:g} s"


def _try_import(python: Path) -> str:
    return f'look where it hangs: `{python} -X faulthandler -c "import torch, torch.export, torch.onnx"`'


def _ended(process: subprocess.Popen[bytes], assembly: Assembly) -> int:
    """The worker's exit status; one that has said everything and does not end is stopped."""
    try:
        return process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        stop(process, assembly)
        return 0 if not assembly.pids else process.returncode


def stop(process: subprocess.Popen[bytes], assembly: Assembly) -> None:
    """Ask the worker to stop, then kill it and what it started."""
    with suppress(OSError):
        process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    _kill_groups(assembly)


@contextmanager
def _worker(python: Path, environment: Mapping[str, str], errors: Any) -> Iterator[subprocess.Popen[bytes]]:
    command = [str(python), "-X", "utf8", str(WORKER)]
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=worker_environment(environment),
            start_new_session=True,
        )
    except OSError as error:
        raise UserError(f"{python} does not run Python: {error.strerror or error}") from error
    with process:
        yield process


def _send(process: subprocess.Popen[bytes], request: Request) -> None:
    """Write the request from a thread of its own: a large one would block while the worker imports.

    Where the worker is gone already, its exit status says more than the broken pipe.
    """
    assert process.stdin is not None
    stream = process.stdin

    def write() -> None:
        with suppress(OSError, ValueError), stream:
            stream.write(request_line(request))

    threading.Thread(target=write, daemon=True).start()


def _kill_groups(assembly: Assembly) -> None:
    for pid in assembly.pids.values():
        if hasattr(os, "killpg"):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)


def _tail(stream: Any) -> str:
    stream.seek(0)
    text: str = stream.read().decode("utf-8", "replace")
    return text[-STDERR_CHARACTERS:].strip()


def _breakdown(python: Path, status: int, printed: str, why_no_python: str) -> UserError | GateError:
    """The user's mistake where that file is no Python, or too old a one."""
    if "needs Python 3.10 or newer" in printed:
        return UserError(printed)
    if why_no_python:
        return UserError(f"{python} does not run Python: {why_no_python}")
    ended = f"killed by signal {-status}" if status < 0 else f"exit status {status}"
    return GateError(f"the worker under {python} broke down ({ended}); it printed:\n{printed or '(nothing)'}")
