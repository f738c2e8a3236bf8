"""Publish results on GitHub. The first stage: in the workflow run that checked, or in a second job of it.

Job summary, annotations and outputs come first, because they need no network; then the comment. Problems with the
comment are reported in the log and in the summary, and never change the exit code, which is the verdict's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from export_gate.github.annotations import KEPT_FOR_REPORTING, annotations_of
from export_gate.github.api import Api, ApiError
from export_gate.github.body import Frame, compose, footer, is_link
from export_gate.github.comment import Mode, Place, Posted, put_comment
from export_gate.github.context import PULL_REQUEST_EVENTS, Context
from export_gate.github.explain import explain
from export_gate.github.files import append_notes, append_outputs, append_report
from export_gate.github.shown import Publication, Shown, load
from export_gate.github.workflow_commands import Annotation
from export_gate.report.escape import terminal
from export_gate.report.record import Report
from export_gate.rules.judge import EXIT_CODES

Say = Callable[[Annotation | str], None]
"""Prints an annotation as a command to the runner, and a text as lines that are not commands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commented:
    """What became of the comment, to be reported."""

    url: str = ""
    info: str = ""
    """A line for the log."""
    problem: str = ""
    """A problem for the log and the summary: the reader expects a comment."""


def publish(order: Publication, context: Context, api: Api | None, say: Say) -> int:
    """Publish everywhere that this run can, and return the verdict's exit code.

    Args:
        order: what to publish.
        context: the workflow run.
        api: None without a token.
        say: prints a line of the log.
    """
    shown = load(order, context)
    for annotation in annotations_of(shown.report, shown.checkout) if order.annotations else ():
        say(annotation)
    problems = [*context.problems, *publish_files(order, context, shown, context.run_url)]
    commented = comment(order, context, api, shown.report)
    finish(context, commented, problems, say)
    return EXIT_CODES[shown.report.verdict]


def publish_files(order: Publication, context: Context, shown: Shown, run_url: str) -> list[str]:
    """Write the job summary, `report.md` and the outputs, and return the problems."""
    frame = Frame(comment_id=order.comment_id, run=context.run, artifact_url=order.artifact_url, run_url=run_url)
    results, report = order.results.absolute(), shown.report
    written, problem = _write_report(results.parent, shown.text) if results.is_file() else ("", "")
    artifacts = results.parent / "artifacts"
    outputs = {
        "verdict": report.verdict,
        "violations": str(report.counts.violations),
        "warnings": str(report.counts.warnings),
        "report-path": written,
        "results-path": str(results) if results.is_file() else "",
        "artifacts-path": str(artifacts) if artifacts.is_dir() else "",
    }
    unusable = "" if not order.artifact_url or is_link(order.artifact_url) else "--artifact-url: expected a plain URL"
    return [
        text
        for text in (
            unusable,
            problem,
            # The summary is on the run's own page, so it does not link to it.
            append_report(context.summary, report, footer(replace(frame, run_url=""))),
            append_outputs(context.output, outputs),
        )
        if text
    ]


def _write_report(folder: Path, text: str) -> tuple[str, str]:
    """Write our own rendering over any file that the run left; return its path, or the problem."""
    path = folder / "report.md"
    try:
        # Project code may have left a link here, and writing would follow it.
        path.unlink(missing_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        return "", f"{path}: cannot be written: {error.strerror or error}"
    return str(path), ""


def comment(order: Publication, context: Context, api: Api | None, report: Report) -> Commented:
    """Post the comment, or report why there is none."""
    if order.mode == "never":
        return Commented(info="no comment: --comment never")
    pull = context.pull_request
    if pull is None:
        if context.event in PULL_REQUEST_EVENTS:
            return Commented(info="no comment: the pull request is unknown")
        return Commented(info=f"no comment: no pull request in {_event(context)}")
    if not pull.is_open:
        return Commented(problem=f"no comment: #{pull.number} is closed")
    if not context.repository:
        return Commented(problem="no comment: GITHUB_REPOSITORY and GITHUB_API_URL do not name the repository")
    if api is None:
        wanted = "pass it only to the step that reports"
        return Commented(problem=f"no comment: GITHUB_TOKEN is not set or is not a token; {wanted}")
    frame = Frame(
        comment_id=order.comment_id,
        run=context.run,
        run_url=context.run_url,
        artifact_url=order.artifact_url,
        template=order.template,
    )
    place = Place(repository=context.repository, number=pull.number)
    return put(report, frame, mode=order.mode, place=place, api=api, context=context)


def put(report: Report, frame: Frame, *, mode: Mode, place: Place, api: Api, context: Context) -> Commented:
    """Compose the comment and post it."""
    composed = compose(report, frame)
    # Whoever hears of failures alone must hear of a change after which there are fewer.
    is_loosened = bool(report.change and report.change.loosened)
    try:
        posted = put_comment(api, place, "always" if is_loosened and mode == "on-failure" else mode, composed.text)
    except ApiError as error:
        why = explain(error, context, api.host)
        return Commented(
            problem=f"no comment: {why}. The job summary, the annotations and results.json have the result"
        )
    return replace(_commented(posted, place, frame.comment_id), problem=_problem(posted, frame, composed.warning))


def _commented(posted: Posted, place: Place, comment_id: str) -> Commented:
    words = {
        "created": "comment written",
        "updated": "comment updated",
        "unchanged": "comment unchanged: nothing new to report",
        "not-needed": "no comment: verified, and there is no comment to resolve",
        "newer": "comment unchanged: a newer run has written it",
        "worse": f"comment unchanged: another job of this run has a worse verdict under comment-id {comment_id}",
    }
    return Commented(
        url=posted.url, info=f"#{place.number}: {words[posted.what]}{f', {posted.url}' if posted.url else ''}"
    )


def _problem(posted: Posted, frame: Frame, warning: str) -> str:
    if posted.what == "worse":
        return (
            f"two jobs of this run share the comment `{frame.comment_id}`, which shows the worse verdict: give each a "
            f"separate `comment-id`, or join their results with `export-gate merge`"
        )
    return warning


def finish(context: Context, commented: Commented, problems: list[str], say: Say) -> None:
    """Report the result of the reporting in the log and in the summary."""
    if commented.info:
        say(terminal(f"export-gate: {commented.info}"))
    all_problems = [*problems, *filter(None, [commented.problem])]
    all_problems += filter(None, [append_outputs(context.output, {"comment-url": commented.url})])
    unwritten = append_notes(context.summary, tuple(all_problems))
    all_problems = [*all_problems, *filter(None, [unwritten])]
    for problem in all_problems[:KEPT_FOR_REPORTING]:
        say(Annotation(kind="warning", title="export-gate", message=problem))
    for problem in all_problems[KEPT_FOR_REPORTING:]:
        say(terminal(f"export-gate: {problem}"))


def _event(context: Context) -> str:
    return f"a {context.event} event" if context.event else "this environment"
