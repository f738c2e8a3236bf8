"""Turn findings into annotations on the code, worst first; GitHub shows ten of each kind per step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from export_gate.github.workflow_commands import Annotation, Kind
from export_gate.report.record import FindingView, ProblemView, Report
from export_gate.rules.base import next_step
from export_gate.rules.keys import config_key
from export_gate.run.checkout import Checkout
from export_gate.wall.source import SourceLine

MOST_OF_A_KIND = 10
KEPT_FOR_REPORTING = 2
"""Warnings reserved for problems of the reporting itself, which come after the findings."""


def annotations_of(report: Report, checkout: Checkout) -> tuple[Annotation, ...]:
    """An error for each violation and each model that could not be checked, a warning for each warning."""
    errors = [*_problems(report, checkout), *_findings(report, checkout, "error")]
    warnings = list(_findings(report, checkout, "warning"))
    return (*_first(errors, MOST_OF_A_KIND), *_first(warnings, MOST_OF_A_KIND - KEPT_FOR_REPORTING))


def _first(found: Sequence[Annotation], most: int) -> Iterator[Annotation]:
    """Each annotation once; if there are more than `most`, the last one gives the number of the rest."""
    # GitHub drops what exceeds its limit without a word, so use the last place to say what is missing.
    once = list(dict.fromkeys(found))
    if len(once) <= most:
        yield from once
        return
    yield from once[: most - 1]
    rest = len(once) - most + 1
    noun = {"error": "violations or unchecked models", "warning": "warnings"}[once[0].kind]
    yield Annotation(
        kind=once[0].kind, title="export-gate", message=f"{rest} more {noun}: see the job summary for all of them."
    )


def _problems(report: Report, checkout: Checkout) -> Iterator[Annotation]:
    for problem in report.problems:
        file, line = _place(problem.model, problem.source, checkout)
        name = "the run" if problem.model is None else problem.model
        yield Annotation(
            kind="error",
            title=f"{name}: could not be checked",
            message=_words(problem.message, problem.hint, problem),
            file=file,
            line=line,
        )


def _findings(report: Report, checkout: Checkout, kind: Kind) -> Iterator[Annotation]:
    severity = {"error": "violation", "warning": "warning"}[kind]
    for view in report.findings:
        if view.severity == severity:
            finding = view.finding
            file, line = _place(finding.model, finding.source, checkout, config_key(finding))
            others = [target for target in dict.fromkeys(view.targets) if target != finding.target]
            also = f" (also in {', '.join(others)})" if others else ""
            yield Annotation(
                kind=kind,
                title=f"{finding.model}: {finding.rule}",
                message=_words(finding.message + also, next_step(finding), view),
                file=file,
                line=line,
            )


def _words(message: str, hint: str, view: FindingView | ProblemView) -> str:
    return "\n".join([message, f"next: {hint}", f"run: {view.command}"])


def _place(
    model: str | None, source: SourceLine | None, checkout: Checkout, key: str = ""
) -> tuple[str | None, int | None]:
    """The user's own source line if there is one, else the line of the model's key in the config."""
    if source is not None and (path := checkout.relative(source.path)) is not None and source.line > 0:
        return path, source.line
    config = checkout.relative(checkout.config) if checkout.config else None
    return config, checkout.line(model, key) if config else None
