"""A report before layout: every decision made, no string escaped yet. Templates only place what is here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from export_gate.rules.base import Finding, Severity
from export_gate.rules.judge import Verdict
from export_gate.wall.contract import TargetName
from export_gate.wall.observation import SourceLine, Stage

State = Literal["failed", "skipped", "waived", "warned", "ok", "not-applicable"]
"""From worst to best: a step that was never reached is no pass, and a violation that is accepted for now neither."""
STATES: tuple[State, ...] = ("failed", "skipped", "waived", "warned", "ok", "not-applicable")
LADDER: tuple[Stage, ...] = ("eager", "export", "convert", "load", "run", "compare", "guards")


@dataclass(frozen=True, slots=True, kw_only=True)
class Worst:
    """The comparison closest to its bound, or furthest over it."""

    measured: float
    allowed: float
    ratio: float
    """measured / allowed; infinite where nothing is allowed or the difference is no number."""
    output: str
    case: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One rung of the status ladder."""

    stage: Stage
    state: State


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """How far one target came, or one separate export of it."""

    target: TargetName
    label: str
    """`onnx`, or `onnx at batch=1` for a separate export."""
    steps: tuple[Step, ...]
    worst: Worst | None
    """None where no comparison gave numbers."""
    compared: int
    """Control inputs whose outputs were compared."""
    affine: bool
    """The basis points settle this artifact for every input, up to rounding."""
    facts: dict[str, str] = field(default_factory=dict)
    """Opset, providers and the like."""
    notes: tuple[str, ...] = ()

    @property
    def state(self) -> State:
        """The worst rung, but that of a stage which no verdict rests on."""
        reached = {step.stage: step.state for step in self.steps}
        if "failed" not in reached.values() and reached["compare"] == "skipped":
            return "skipped"
        return next((state for state in ("failed", "waived", "warned") if state in reached.values()), "ok")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One model on one target."""

    target: TargetName
    state: State
    reason: str = ""
    """The rule that decided a failed, waived or warned cell."""
    ratio: float | None = None
    """Worst error over its tolerance, finite; None where no number says it."""
    ladders: tuple[Ladder, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One model."""

    model: str
    state: State
    reason: str = ""
    """Why there are no cells to read: `could not be checked`, `was not run`."""
    cells: tuple[Cell, ...]
    dims: str
    """`batch 2..16, side 8..64 in steps of 8`; empty without dims."""
    compared: int
    """Control inputs at which targets were compared with eager, taken from the target with the most."""
    evidence: str
    """What the row's verdict rests on, as one sentence."""
    affine: str = ""
    """Which targets the affine reduction settles; empty for none."""
    left_out: tuple[str, ...] = ()
    parameters: int = 0
    weights_bytes: int = 0
    peak_memory_bytes: int = 0
    duration_s: float = 0.0


Mark = Literal[Severity, "waived"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingView:
    """A finding, with the same one in other targets folded into it."""

    finding: Finding
    statement: str
    """The message without the model, target, output and case that it starts with."""
    times_over: float | None
    """measured / allowed; None where that is no number above 1."""
    command: str
    """Reproduces it; safe to paste into a POSIX shell."""
    source: SourceLine | None = None
    """None too where the statement quotes it."""
    also: tuple[Finding, ...] = ()
    """The same in other targets, by output or by words."""

    @property
    def severity(self) -> Severity:
        """Of the finding and all it folds."""
        return self.finding.severity

    @property
    def mark(self) -> Mark:
        """What it is shown as: its severity, or that it is waived."""
        return "waived" if self.finding.waiver else self.finding.severity

    @property
    def targets(self) -> tuple[TargetName, ...]:
        """All targets that show it; empty where it is the model's."""
        return tuple(f.target for f in (self.finding, *self.also) if f.target is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemView:
    """A model that could not be checked as declared, or a run that did not happen."""

    model: str | None
    message: str
    hint: str
    command: str
    source: SourceLine | None = None
    details: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactView:
    """A file that was verified, or that failed."""

    model: str
    label: str
    path: str
    sha256: str
    size_bytes: int
    verified: bool
    """Only these should ship."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The numbers of the headline. Findings are counted one by one, folded or not."""

    models: int
    verified: int
    unchecked: int
    """Models without an answer: a problem, or never run."""
    violations: int
    warnings: int
    notes: int
    """Without waived violations."""
    waived: int = 0
    control_inputs: int
    """Compared ones, over all models."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything that a template needs."""

    verdict: Verdict
    headline: str
    counts: Counts
    targets: tuple[TargetName, ...]
    """Columns of the table."""
    rows: tuple[Row, ...]
    findings: tuple[FindingView, ...]
    """Worst first."""
    problems: tuple[ProblemView, ...]
    artifacts: tuple[ArtifactView, ...]
    evidence: str
    environment: str
    """Versions, CPU and interpreter; empty where the worker did not come up."""
    tool_version: str
    config_path: str
    config_sha256: str
    head: str | None
    started: str
    duration_s: float
