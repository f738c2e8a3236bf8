"""The driver's request to one worker: a task for each of some models, or the replay of a kit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Union

from export_gate.wall.conformance import Kit
from export_gate.wall.contract import Job

PROTOCOL = 6
"""Incremented whenever a record that crosses the wall changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observe:
    """Export the model and compare every target with eager."""

    kind: Literal["observe"] = "observe"
    diagnosis: bool = True
    """Run experiments after a failure that find its cause."""
    dependencies: bool = False
    """Answer with what the verdict depends on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListControls:
    """Stop after the control set."""

    kind: Literal["controls"] = "controls"
    show: str | None = None
    """The control input to answer with."""
    save: str | None = None
    """An .npz that receives that input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Describe:
    """Answer with forward's signature and inputs that were guessed for it."""

    kind: Literal["describe"] = "describe"
    artifact: str | None = None
    """An ONNX file of the model, whose inputs say what forward takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteKit:
    """Observe, then write artifacts and data sets."""

    kind: Literal["kit"] = "kit"
    folder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureStrength:
    """Observe, then plant small faults in an ONNX file and see which ones the control set notices."""

    kind: Literal["strength"] = "strength"
    target: str
    """Whose file."""
    budget_s: float
    """For trying mutants."""
    seed: int
    most: int | None = None
    """Mutants to try; None leaves it to the time."""


Task = Union[Observe, ListControls, Describe, WriteKit, MeasureStrength]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One task for each of the jobs."""

    kind: Literal["models"] = "models"
    protocol: int = PROTOCOL
    jobs: tuple[Job, ...]
    parallel: int
    """How many models are observed at a time."""
    log_folder: str
    """Folder for the output of each model, one file per model."""
    task: Task = Observe()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRequest:
    """Run a kit's data sets in ONNX Runtime; needs no torch."""

    kind: Literal["replay"] = "replay"
    protocol: int = PROTOCOL
    folder: str
    kit: Kit
    """As read and checked."""
    providers: tuple[str, ...]


AnyRequest = Union[Request, ReplayRequest]
