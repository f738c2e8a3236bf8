"""Compose the whole text of the comment: our marker, the report, links to the run and its files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from export_gate.github.comment import Text
from export_gate.github.marker import Marker, Run, digest, parse_marker
from export_gate.github.template import TemplateError, render_with
from export_gate.report.budget import COMMENT_CHARACTERS, characters
from export_gate.report.record import Report
from export_gate.report.render import render

# No parentheses, spaces or quotes, which end a link in Markdown.
_LINK = re.compile(r"https?://[A-Za-z0-9.\[\]:_-]+/[A-Za-z0-9._~/%?=&#-]*", re.ASCII)
LONGEST_LINK = 2_000
LOOSENED = """{% import "_macros.md.j2" as m %}
{{ m.change(report.change, 20) }}

"""
"""What a change loosens, above a project's own layout."""
_HARMLESS = re.compile(r"(?:(?!    |\t)[^<>`~\[\]$\\\n]*\n)*\n|", re.ASCII)
"""Text above it that cannot hide it, as a comment, a folded part, a code block or the title of a link would."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What surrounds the report."""

    comment_id: str
    run: Run
    run_url: str = ""
    artifact_url: str = ""
    template: Path | None = None
    """The project's own template for the report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """A body within GitHub's limit."""

    text: Text
    warning: str = ""
    """Why the project's own template was not used."""


def compose(report: Report, frame: Frame) -> Composed:
    """The comment for `report`."""
    marker = Marker(comment=frame.comment_id, run=frame.run, verdict=report.verdict, digest=digest(report))
    head, foot = f"{marker}\n", footer(frame)
    budget = COMMENT_CHARACTERS - characters(head + foot)
    warning = ""
    try:
        own = frame.template
        middle = render(report, "comment", budget=budget) if own is None else _own_layout(own, report, budget)
    except TemplateError as error:
        middle = render(report, "comment", budget=budget)
        warning = f"the template {frame.template} was not used: {error}; the comment uses the built-in layout"
    return Composed(text=Text(marker=marker, body=f"{head}{middle}{foot}"), warning=warning)


def _own_layout(template: Path, report: Report, budget: int) -> str:
    # The change can edit the template as well as the config: what it loosens is not the template's to leave out.
    first = (
        render(report, "comment", budget=budget, source=LOOSENED) if report.change and report.change.loosened else ""
    )
    middle = render_with(template, report, budget - characters(first))
    if not middle.strip():
        raise TemplateError("it left the comment empty")
    if any(parse_marker(line) for line in middle.splitlines()):
        raise TemplateError("it contains a marker of export-gate, which identifies our comments")
    return with_loosened(first, middle)


def with_loosened(first: str, layout: str) -> str:
    """The project's own layout below what is loosened, unless that stands in it where everybody sees it."""
    said = first.strip()
    is_shown = said in layout and (not said or _HARMLESS.fullmatch(layout[: layout.index(said)]))
    return layout if is_shown else f"{first}{layout}"


def footer(frame: Frame) -> str:
    """A last line of links; empty if there are none."""
    links = (("workflow run", frame.run_url), ("full report and files", frame.artifact_url))
    shown = [f"[{name}]({url})" for name, url in links if is_link(url)]
    return f"\n<sub>{' · '.join(shown)}</sub>\n" if shown else ""


def is_link(url: str) -> bool:
    """Whether `url` is safe in Markdown without escaping."""
    return len(url) <= LONGEST_LINK and _LINK.fullmatch(url) is not None
