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

from export_gate.codec import decode
from export_gate.contract import Request
from export_gate.errors import GateError, UserError
from export_gate.interpreter import why_no_python, worker_environment
from export_gate.observation import RunObservation
from export_gate.protocol import Event, parse_event, request_line

WORKER = Path(__file__).parent / "worker" / "__main__.py"
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
                    self._record(event)["reached"] = event.field
            case "set":
                if event.model:
                    self._record(event)[event.field] = event.value
                else:
                    self.environment = event.value
            case "add":
                self._record(event).setdefault(event.field, []).append(event.value)

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
            _follow(process, assembly, listener)
            status = _ended(process, assembly)
        except BaseException:
            stop(process, assembly)
            raise
        finally:
            _kill_groups(assembly)
        if status != 0 or assembly.environment is None:
            why = why_no_python(python, environment) if assembly.environment is None else ""
            raise _breakdown(python, status, _tail(errors), why)
    return Observed(run=assembly.observation(), answers=tuple(assembly.answers))


def _follow(process: subprocess.Popen[bytes], assembly: Assembly, listener: Listener) -> None:
    """Take in every event until the worker closes its end."""
    assert process.stdout is not None
    for line in process.stdout:
        event = _event(line)
        if event is not None:
            assembly.apply(event)
            listener(event)


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


def _event(line: bytes) -> Event | None:
    """The event of a line; None for a line that is none, which leaves its fact missing and so never green."""
    try:
        return parse_event(line)
    except ValueError:
        return None


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
