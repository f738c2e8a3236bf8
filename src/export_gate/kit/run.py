"""A checked kit to what ONNX Runtime makes of it: starts `worker/replay.py` and gathers its events."""

from __future__ import annotations

import json
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from export_gate.run.interpreter import why_no_python, worker_environment
from export_gate.run.observe import WORKER
from export_gate.wall.codec import decode, encode
from export_gate.wall.conformance import ReplayRequest
from export_gate.wall.errors import GateError, UserError
from export_gate.wall.observation import CaseResult, Environment, Failure
from export_gate.wall.protocol import Event, parse_event

PRINTED_CHARACTERS = 2000


@dataclass(slots=True, kw_only=True)
class Seen:
    """What the worker told."""

    environment: Environment | None = None
    cases: dict[str, list[CaseResult]] = field(default_factory=dict)
    """Export key -> results, in order."""
    failures: dict[str, Failure] = field(default_factory=dict)
    """Export key -> why it ended early."""
    at: Event | None = None
    """Where the work was last."""
    is_whole: bool = False

    def apply(self, event: Event) -> None:
        """Take in one event.

        Raises:
            UserError: a package is missing, or a file of the kit is not what it should be.
        """
        match event.op, event.field:
            case "unusable", _:
                raise UserError(str(event.value))
            case "set", "environment":
                self.environment = decode(Environment, event.value)
            case "set", "failure":
                self.failures[event.target] = decode(Failure, event.value)
            case "add", "cases":
                self.cases.setdefault(event.target, []).append(decode(CaseResult, event.value))
            case "at", _:
                self.at = event
            case "ended", _:
                self.is_whole = True


def run_kit(request: ReplayRequest, python: Path, environment: Mapping[str, str]) -> Seen:
    """What ONNX Runtime under that interpreter makes of the kit.

    Raises:
        UserError: the interpreter lacks a package or does not start, or a file of the kit is malformed.
        GateError: the worker broke down before it got to the kit.
    """
    seen = Seen()
    with tempfile.TemporaryFile() as errors:
        try:
            process = _start(python, environment, errors)
        except OSError as error:
            raise UserError(f"{python} does not run Python: {error.strerror or error}") from error
        with process:
            try:
                _send(process, request)
                _follow(process, seen)
                status = process.wait()
            except BaseException:
                process.kill()
                raise
        if not seen.is_whole:
            _explain(seen, python, status, _tail(errors), environment)
    return seen


def _start(python: Path, environment: Mapping[str, str], errors: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [str(python), "-X", "utf8", str(WORKER), "replay"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        env=worker_environment(environment),
    )


def _send(process: subprocess.Popen[bytes], request: ReplayRequest) -> None:
    """Write the request; the worker answers nothing before it has read all of it."""
    assert process.stdin is not None
    try:
        process.stdin.write(json.dumps(encode(request), allow_nan=False).encode() + b"\n")
        process.stdin.close()
    except BrokenPipeError:
        pass  # it is gone already; its exit status says more


def _follow(process: subprocess.Popen[bytes], seen: Seen) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        try:
            event = parse_event(line)
        except ValueError:
            continue  # not ours; a result that is missing is never taken for one that conforms
        seen.apply(event)


def _explain(seen: Seen, python: Path, status: int, printed: str, environment: Mapping[str, str]) -> None:
    """A death while the model was loaded or run is the model's; any other is the gate's, or the interpreter's."""
    if seen.environment is not None and seen.at is not None and status < 0:
        stage: Any = seen.at.field
        seen.failures[seen.at.target] = Failure(
            stage=stage,
            kind="died",
            type=_signal_name(-status),
            message="the process was killed",
            case=str(seen.at.value or "") or None,
        )
        return
    if "needs Python 3.10 or newer" in printed:
        raise UserError(printed)
    reason = why_no_python(python, environment) if seen.environment is None else ""
    if reason:
        raise UserError(f"{python} does not run Python: {reason}")
    ended = f"killed by signal {-status}" if status < 0 else f"exit status {status}"
    raise GateError(f"the worker under {python} broke down ({ended}); it printed:\n{printed or '(nothing)'}")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _tail(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode("utf-8", "replace")[-PRINTED_CHARACTERS:].strip()
