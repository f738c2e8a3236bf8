"""Turn a request into observations: follow the worker's events and assemble what they say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from export_gate.run.launch import Listener, converse
from export_gate.wall.codec import decode
from export_gate.wall.errors import GateError
from export_gate.wall.observation import STAGES, RunObservation
from export_gate.wall.protocol import Event
from export_gate.wall.request import Request


@dataclass(slots=True)
class Assembly:
    """Observations as nested JSON values, grown event by event."""

    environment: Any = None
    models: dict[str, dict[str, Any]] = field(default_factory=dict)
    targets: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    answers: list[Any] = field(default_factory=list)

    def apply(self, event: Event) -> None:
        """Take in one event."""
        match event.op:
            case "answer":
                self.answers.append(event.value)
            case "started":
                self.models.setdefault(event.model, {"model": event.model})
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
            # Validated once, as a whole: field by field, an incomplete record would look like a wrong one.
            return decode(RunObservation, {"environment": self.environment, "models": models})
        except ValueError as error:
            raise GateError(f"the worker sent an invalid observation: {error}") from error


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

    def take(event: Event) -> None:
        assembly.apply(event)
        listener(event)

    converse(request, python, environment, take)
    return Observed(run=assembly.observation(), answers=tuple(assembly.answers))
