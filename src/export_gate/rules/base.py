"""Define a rule and its findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from export_gate.wall.contract import ModelContract, TargetName, Waiver
from export_gate.wall.observation import ModelObservation, SourceLine

Severity = Literal["violation", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("violation", "warning", "note")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One broken promise, with what was measured and what to do next."""

    rule: str
    severity: Severity
    model: str
    message: str
    """One sentence in plain text: what, where, the measured value and the allowed one."""
    hint: str
    """The next step, in the imperative."""
    target: TargetName | None = None
    output: str | None = None
    case: str | None = None
    measured: float | None = None
    allowed: float | None = None
    occurrences: int = 1
    """Number of control inputs (or probes) with the same fault; the message names the worst one."""
    source: SourceLine | None = None
    details: tuple[str, ...] = ()
    """Further lines, folded away in the report (traceback, torch's suggestions)."""
    waiver: Waiver | None = None
    """The waiver that accepts it until a date; a waived finding is a note, and its hint says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """What reports and lists show about a rule."""

    name: str
    """Kebab-case, equal to the file name."""
    severity: Severity
    """The severity of most of its findings; a guard policy, for example, can lower it."""
    summary: str
    """One sentence: what it finds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(Named):
    """A named check over one model's observations."""

    check: Callable[[ModelContract, ModelObservation], Iterable[Finding]]
