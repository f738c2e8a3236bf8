"""Have the worker replay a checked kit in ONNX Runtime, and collect its events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from export_gate.run.launch import converse
from export_gate.wall.codec import decode
from export_gate.wall.observation import CaseResult, Environment, Failure
from export_gate.wall.protocol import Event
from export_gate.wall.request import ReplayRequest
from export_gate.wall.words import signal_name


@dataclass(slots=True, kw_only=True)
class Seen:
    """What the worker reported."""

    environment: Environment | None = None
    cases: dict[str, list[CaseResult]] = field(default_factory=dict)
    """Export key -> results, in order."""
    failures: dict[str, Failure] = field(default_factory=dict)
    """Export key -> why it ended early."""
    at: Event | None = None
    """Where the work was last."""

    def apply(self, event: Event) -> None:
        """Take in one event."""
        match event.op, event.field:
            case "set", "environment":
                self.environment = decode(Environment, event.value)
            case "set", "failure":
                self.failures[event.target] = decode(Failure, event.value)
            case "add", "cases":
                self.cases.setdefault(event.target, []).append(decode(CaseResult, event.value))
            case "at", _:
                self.at = event


def run_kit(request: ReplayRequest, python: Path, environment: Mapping[str, str]) -> Seen:
    """Replay the kit with ONNX Runtime under that interpreter; if it dies while it runs the model, the model failed.

    Raises:
        UserError: the interpreter lacks a package or does not start, or a file of the kit is malformed.
        GateError: the worker broke down before it got to the kit.
    """
    seen = Seen()
    status = converse(request, python, environment, seen.apply)
    # A replay runs in the worker's own process, so that a crash of the model is a crash of the worker.
    if status < 0 and seen.at is not None:
        seen.failures[seen.at.target] = _death(seen.at, -status)
    return seen


def _death(at: Event, number: int) -> Failure:
    stage: Any = at.field
    return Failure(
        stage=stage,
        kind="died",
        type=signal_name(number),
        message="the process was killed",
        case=str(at.value or "") or None,
    )
