"""A report before layout: every decision is made, no string is escaped yet. Templates only place these values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from export_gate.rules.base import Finding, Severity
from export_gate.rules.judge import Verdict
from export_gate.rules.measure import Measured, Measurement
from export_gate.rules.wording import at_source
from export_gate.wall.contract import TargetName
from export_gate.wall.observation import Stage
from export_gate.wall.source import SourceLine

State = Literal["failed", "skipped", "waived", "warned", "ok", "moot", "not-applicable"]
"""From worst to best: neither a step that was never reached nor a violation that is waived is a pass.

`moot`: whatever the step showed means nothing, because an earlier failure explains it.
"""
STATES: tuple[State, ...] = ("failed", "skipped", "waived", "warned", "ok", "moot", "not-applicable")
LADDER: tuple[Stage, ...] = ("eager", "export", "convert", "load", "run", "compare", "guards")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One rung of the status ladder."""

    stage: Stage
    state: State


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """The stages that one target, or one separate export of it, went through."""

    target: TargetName
    label: str
    """`onnx`, or `onnx at batch=1` for a separate export."""
    steps: tuple[Step, ...]
    worst: Measurement | None
    """The one closest to its bound, or farthest over it; None if no comparison gave numbers."""
    compared: int
    """Control inputs whose outputs were compared."""
    affine: bool
    """Whether the basis points cover every input of this artifact, up to rounding."""
    facts: dict[str, str] = field(default_factory=dict)
    """Opset, providers and the like."""
    notes: tuple[str, ...] = ()

    @property
    def state(self) -> State:
        """The state of the worst rung, except for a stage that does not affect the verdict."""
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
    """Worst error / bound, finite; None if there is no such number."""
    ladders: tuple[Ladder, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One model."""

    model: str
    state: State
    reason: str = ""
    """Why there are no cells: `could not be checked`, `was not run`."""
    cells: tuple[Cell, ...]
    dims: str
    """`batch 2..16, side 8..64 in steps of 8`; empty without dims."""
    compared: int
    """Control inputs at which targets were compared with eager, taken from the target with the most."""
    evidence: str
    """The evidence behind the row's verdict, as one sentence."""
    affine: str = ""
    """The targets that the affine reduction covers; empty for none."""
    left_out: tuple[str, ...] = ()
    dropped: str = ""
    """The control inputs that the limit and the budget left out; empty for none."""
    unchanged: str = ""
    """`unchanged since 1a2b3c4d5e, verified 2026-11-30`; empty if it was verified in this run."""
    parameters: int = 0
    weights_bytes: int = 0
    peak_memory_bytes: int = 0
    duration_s: float = 0.0


Mark = Literal[Severity, "waived"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingView:
    """A finding, merged with the same finding in other targets."""

    finding: Finding
    statement: str
    """The message without the model, target, output and case that it starts with."""
    times_over: float | None
    """measured / allowed; None if that is not a number above 1."""
    command: str
    """The command that reproduces it; safe to paste into a POSIX shell."""
    source: SourceLine | None = None
    """The user's source line; None if unknown, or if the statement quotes it."""
    scope: str = ""
    """What works beside a violation; empty if that is not useful."""
    cause: str = ""
    """Cause, owner and evidence of a violation, as one line; empty for other findings."""
    node: str = ""
    """The node at which the output goes wrong, as one line; empty if it is not known."""
    fails_at: str = ""
    """The smallest failing input, as one line; empty if none was looked for."""
    details: tuple[str, ...] = ()
    """Further lines, folded away: the experiments, then those of the finding."""
    also: tuple[Finding, ...] = ()
    """The same finding in other targets, and in other outputs with the same cause."""
    instead: str = ""
    """How other targets show the same cause, as one line; empty if they do not."""
    hidden: int = 0
    """Findings that show it in another way."""
    asks_nothing: bool = False
    """Whether it stands for a model's notes that ask for nothing, in one line."""

    @property
    def next_step(self) -> str:
        """The hint, which names by its number alone the line that is shown above it."""
        source = self.finding.source
        return self.finding.hint.replace(at_source(source), f" at line {source.line}") if source else self.finding.hint

    @property
    def severity(self) -> Severity:
        """The highest severity of the merged findings."""
        return self.finding.severity

    @property
    def mark(self) -> Mark:
        """How it is shown: its severity, or as waived."""
        return "waived" if self.finding.waiver else self.finding.severity

    @property
    def targets(self) -> tuple[TargetName, ...]:
        """All targets with this finding; empty if it concerns the model."""
        return tuple(dict.fromkeys(f.target for f in (self.finding, *self.also) if f.target is not None))

    @property
    def outputs(self) -> tuple[str, ...]:
        """All outputs with this finding; empty if it concerns none."""
        return tuple(dict.fromkeys(f.output for f in (self.finding, *self.also) if f.output is not None))

    @property
    def marks(self) -> tuple[Mark, ...]:
        """Its mark for each finding that it stands for; a note stands for itself."""
        return (self.mark,) * (1 if self.severity == "note" else 1 + len(self.also) + self.hidden)


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
    """Whether the artifact was verified; only such artifacts should ship."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeView:
    """What the change does to the check, in sentences that quote code in backticks."""

    origin: str
    """What the config was compared with."""
    loosened: tuple[str, ...]
    otherwise: tuple[str, ...]
    """What it tightens, and what it checks in another way."""
    fails: bool
    """Whether a loosened check is a violation."""

    @property
    def folded(self) -> str:
        """What it does otherwise, in one line; empty if it does nothing else."""
        return "; ".join(self.otherwise)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The numbers in the headline. Violations and warnings are counted before they are merged."""

    models: int
    verified: int
    unchecked: int
    """Models without a result: they had a problem or were never run."""
    violations: int
    causes: int
    """Violations after they are merged: what reports show as one is one."""
    warnings: int
    notes: int
    """Without waived violations; as many as reports list."""
    waived: int = 0
    control_inputs: int
    """Compared control inputs over all models."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything that a template needs."""

    verdict: Verdict
    headline: str
    counts: Counts
    targets: tuple[TargetName, ...]
    """Columns of the table."""
    rows: tuple[Row, ...]
    """Worst first, so that nobody looks for the model that failed."""
    findings: tuple[FindingView, ...]
    """Worst first."""
    problems: tuple[ProblemView, ...]
    artifacts: tuple[ArtifactView, ...]
    evidence: str
    environment: str
    """Versions, CPU and interpreter; empty if the worker did not start."""
    tool_version: str
    config_path: str
    config_sha256: str
    head: str | None
    started: str
    duration_s: float
    shows_shares: bool = False
    """Whether the table has an error as a share of its tolerance, which the reader may not know how to read."""
    change: ChangeView | None = None
    """None without a base, or if the config checks the same."""
    measured: tuple[Measured, ...] = field(default=(), repr=False)
    """What pictures and test reports draw from."""
