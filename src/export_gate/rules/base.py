"""Define a rule and its findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from export_gate.rules.measure import Measured
from export_gate.rules.wording import place
from export_gate.wall.contract import TargetName, Waiver
from export_gate.wall.diagnosis import Cause, Owner
from export_gate.wall.nodes import NodeTrace
from export_gate.wall.observation import Stage
from export_gate.wall.smallest import SmallestInput
from export_gate.wall.source import SourceLine

Severity = Literal["violation", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("violation", "warning", "note")
Part = Literal["target", "output", "case"]


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
    recipe: str = ""
    """Lines of Python that the hint speaks of, to be pasted; empty for none."""
    target: TargetName | None = None
    output: str | None = None
    case: str | None = None
    measured: float | None = None
    allowed: float | None = None
    occurrences: int = 1
    """Number of control inputs (or probes) with the same fault; the message names the worst one."""
    tried: int = 0
    """Number of inputs at which the same was asked, `occurrences` of which have the fault; 0 if it was not counted."""
    key: str = ""
    """The key of `export-gate.yml` that it is about, below the model's: `dims.batch`; empty where `rules.keys` says."""
    source: SourceLine | None = None
    details: tuple[str, ...] = ()
    """Further lines, folded away in the report (traceback, torch's suggestions)."""
    owner: Owner | None = None
    """The part that has to change, or whose bug it is; None where nothing says it."""
    cause: Cause = "unknown"
    verdict: str = ""
    """Owner and cause in one sentence, with what shows them; empty without experiments."""
    evidence: tuple[str, ...] = ()
    """What owner and cause rest on, one sentence a line; also what it is not."""
    trace: NodeTrace | None = None
    """The node at which the output goes wrong, without the errors of the other nodes; None if it was not found out."""
    smallest: SmallestInput | None = None
    """The smallest input found that fails in the same way; None if none was looked for."""
    saved_case: str = ""
    """The .npz that the command line asked for and that holds that input, from the config's folder; else empty."""
    follow_ups: int = 0
    """Findings that this one explains and that are not listed."""
    waiver: Waiver | None = None
    """The waiver that accepts it until a date; a waived finding is a note, and its hint says so."""


NOTHING_TO_DO = "Nothing to do"
"""How the hint of a note starts that asks for nothing; reports fold such notes into one line for each model."""


def next_step(finding: Finding) -> str:
    """The hint, and below it the lines to paste, if there are any."""
    return f"{finding.hint}\n{finding.recipe}" if finding.recipe else finding.hint


def asks_nothing(finding: Finding) -> bool:
    """Whether nobody needs to act on it."""
    return finding.severity == "note" and finding.waiver is None and finding.hint.startswith(NOTHING_TO_DO)


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """Everything that reports, lists and the config need to know of a rule."""

    name: str
    """Kebab-case, equal to the file name."""
    severity: Severity
    """The severity of most of its findings; a guard policy, for example, can lower it."""
    summary: str
    """One sentence: what it finds."""
    stage: Stage | None
    """The rung of the status ladder that shows its findings; None is the stage at which the model or target ended."""
    waivable: tuple[Part, ...] | None
    """The parts of a finding that its waivers may name. None: no waiver accepts it, since it says that something was
    not measured, and nobody would know what is accepted.
    """
    owner: Owner | None = None
    """The owner of findings that do not name one themselves."""
    cause: Cause = "unknown"
    """The cause of those."""

    def finding(
        self,
        model: str,
        words: str,
        hint: str,
        *,
        severity: Severity | None = None,
        target: TargetName | None = None,
        output: str | None = None,
        case: str | None = None,
        at: str | None = None,
        **facts: Any,
    ) -> Finding:
        """A finding of this rule.

        Args:
            model: its name.
            words: what is wrong, without the place.
            hint: the next step.
            severity: if it is not the rule's.
            target: where, as far as the finding is about one; so are output and case.
            output: likewise.
            case: likewise.
            at: anything else about the place.
            facts: further fields of the finding.
        """
        return Finding(
            rule=self.name,
            severity=severity or self.severity,
            model=model,
            target=target,
            output=output,
            case=case,
            message=f"{place(model, target, output, case, at)}: {words}",
            hint=hint,
            **facts,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(Named):
    """A named check over one model's measurements."""

    check: Callable[[Measured], Iterable[Finding]]
