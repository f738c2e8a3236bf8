"""Turn results.json into the report to publish: judged again, or a report that there is no verdict.

The project's code, or an untrusted run, could have written the file: only its observations are used.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from export_gate import __version__
from export_gate.github.comment import Mode
from export_gate.github.context import Context
from export_gate.outcome.deadline import JUDGING_S, STRANGER_S, OverdueError, deadline
from export_gate.outcome.judging import Outcome, fail_on_warnings, rejudge
from export_gate.report.build import build_report
from export_gate.report.commands import DEFAULT_CONFIG, Caller, reproduce
from export_gate.report.places import places, relocated
from export_gate.report.record import ProblemView, Report
from export_gate.report.render import Format, render
from export_gate.report.results import Results
from export_gate.rules.judge import EXIT_CODES
from export_gate.run.checkout import ELSEWHERE, Checkout
from export_gate.wall.errors import UserError
from export_gate.wall.observation import RunObservation

CAUSE_ELSEWHERE = (
    "The log of the step that ran the gate shows the reason: a mistake in the config, or a run that was stopped."
)
BETTER_THAN_THE_RUN = (
    "the results say that everything is verified, but the run ended with exit code {}: "
    "it failed after writing them, or somebody changed them"
)
INTERPRETER_ELSEWHERE = re.compile(rf" --python '?{re.escape(ELSEWHERE)}/[^\s']*'?")
"""Of a command: only the machine that ran has an interpreter at that absolute path."""
LIMITED: tuple[Format, ...] = ("comment", "summary")
LAST_LINES = 20
"""Lines of a log to show: enough for every mistake in a new config."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """What is to be published, and how."""

    results: Path
    mode: Mode = "always"
    comment_id: str = "export-gate"
    template: Path | None = None
    fail_on: Literal["violation", "warning"] = "violation"
    artifact_url: str = ""
    annotations: bool = True
    """False if the verifying job has already written them."""
    exit_code: int | None = None
    """The run's own exit code; None if it is not known here."""
    log: Path | None = None
    """The run's log: it shows why there are no results, if there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A report to publish, with the repository positions of its files."""

    report: Report
    checkout: Checkout
    text: str
    """The whole report as Markdown, for `report.md`."""


def load(order: Publication, context: Context, *, is_strange: bool = False) -> Shown:
    """The report, judged again; findings in the file are ignored.

    Args:
        order: what is published.
        context: the workflow run.
        is_strange: whether anybody may have made the results, so that rendering them is tried first.
    """
    try:
        with deadline(STRANGER_S if is_strange else JUDGING_S):
            shown = shown_of(order, rejudge(order.results, lambda contract: contract), context)
            # What takes too long or raises here would do so again where it is published, with no time limit.
            for format_ in LIMITED if is_strange else ():
                render(shown.report, format_)
    except OverdueError as error:
        return nothing_to_show(f"{order.results}: {error}", context)
    except UserError as error:
        return nothing_to_show(_last_words(order) or str(error), context)
    except Exception as error:  # noqa: BLE001 - the project's code has had the file: its numbers may trip any rule
        reason = f"{order.results}: the observations contradict each other ({type(error).__name__}: {error})"
        return nothing_to_show(reason, context)
    # The process that ran the gate saw its exit code; the file could be changed afterwards.
    if order.exit_code and EXIT_CODES[shown.report.verdict] == 0:
        return nothing_to_show(f"{order.results}: {BETTER_THAN_THE_RUN.format(order.exit_code)}", context)
    return shown


def _last_words(order: Publication) -> str:
    """The end of the run's log, if the run wrote no results."""
    if order.log is None or order.results.exists():
        return ""
    try:
        lines = order.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        return ""
    return "\n".join(lines[-LAST_LINES:])


def shown_of(order: Publication, outcome: Outcome, context: Context) -> Shown:
    """The outcome as it is published."""
    decided = fail_on_warnings(outcome) if order.fail_on == "warning" else outcome
    report = replace(decided.report, head=context.head or decided.report.head)
    environment, checkout = outcome.results.run.environment, outcome.results.checkout
    return _to_show(report, checkout, environment.executable if environment else "")


def nothing_to_show(reason: str, context: Context) -> Shown:
    """What is published if the results cannot be used."""
    return _to_show(no_results(reason, context), Checkout(), "")


def _to_show(report: Report, checkout: Checkout, executable: str) -> Shown:
    """What is published, without paths of this machine or of the one that ran."""
    # The publishing machine's own paths too: they are in messages about files that it could not read.
    known = places(checkout, (executable, sys.prefix, Path.cwd().as_posix()))
    here = relocated(report, lambda text: INTERPRETER_ELSEWHERE.sub("", known.shown(text)))
    return Shown(report=here, checkout=checkout, text=render(here, "markdown"))


def no_results(reason: str, context: Context) -> Report:
    """A report that there is no verdict; it replaces an earlier run's report on another commit."""
    nothing = Results(
        tool_version=__version__,
        config_path=DEFAULT_CONFIG,
        config_sha256="",
        started="",
        duration_s=0.0,
        contracts=(),
        run=RunObservation(),
        findings=(),
        verdict="broken",
        head=context.head,
    )
    problem = ProblemView(
        model=None, message=f"There are no results: {reason}", hint=CAUSE_ELSEWHERE, command=reproduce(Caller())
    )
    return replace(build_report(nothing), headline="export-gate: no verdict, no results", problems=(problem,))
