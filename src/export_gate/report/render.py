"""Render a report as text with the templates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from jinja2 import FileSystemLoader, StrictUndefined
from jinja2.sandbox import SandboxedEnvironment

from export_gate.report.budget import (
    COMMENT_CHARACTERS,
    MARKER_CHARACTERS,
    SUMMARY_BYTES,
    Allowance,
    Limits,
    Shown,
    characters,
    fit,
    utf8_bytes,
)
from export_gate.report.escape import inert_commands
from export_gate.report.filters import FILTERS, painter
from export_gate.report.record import Report

Format = Literal["markdown", "terminal", "comment", "summary"]

TEMPLATES: dict[Format, str] = {
    "markdown": "summary.md.j2",
    "terminal": "terminal.txt.j2",
    "comment": "comment.md.j2",
    "summary": "summary.md.j2",
}
MACROS = "_macros.md.j2"
"""What the templates in Markdown share."""
ALLOWANCES: dict[Format, Allowance] = {
    "markdown": Allowance(size=utf8_bytes, limit=None, in_full=("violation", "warning", "note")),
    "terminal": Allowance(
        size=characters,
        limit=None,
        in_full=("violation",),
        most_in_full=20,
        limits=Limits(characters=800, lines=12, details=4_000),
    ),
    "comment": Allowance(
        size=characters,
        limit=COMMENT_CHARACTERS - MARKER_CHARACTERS,
        in_full=("violation",),
        limits=Limits(characters=800, lines=40, details=6_000),
    ),
    "summary": Allowance(
        size=utf8_bytes,
        limit=SUMMARY_BYTES,
        in_full=("violation", "warning", "note"),
        limits=Limits(characters=4_000, lines=200, details=40_000),
    ),
}


def render(
    report: Report,
    format: Format,  # noqa: A002
    *,
    color: bool = False,
    budget: int | None = None,
    source: str | None = None,
    report_file: str = "the Markdown report",
) -> str:
    """The report as text.

    Args:
        report: what to show.
        format: `markdown` is the report file, `summary` the same within GitHub's limit of a job summary.
        color: ANSI styles, in the terminal format only.
        budget: characters (comment) or bytes (summary) to stay within; None is the format's own limit.
        source: a template's text to use instead of ours, with the same names and filters; it may raise any exception.
        report_file: the name of the full report, as the terminal format shows it.

    Raises:
        ValueError: the budget is too small for the verdict.
    """
    allowance = ALLOWANCES[format] if budget is None else replace(ALLOWANCES[format], limit=budget)
    jinja = environment(color=color and format == "terminal")
    template = jinja.get_template(TEMPLATES[format]) if source is None else jinja.from_string(source)

    def draw(shown: Shown) -> str:
        # Last, because wrapping can move text from inside a line to the start of one.
        return inert_commands(template.render(report=report, shown=shown, report_file=report_file)).strip("\n") + "\n"

    return fit(report, draw, allowance)


def compile_templates() -> None:
    """Compile those that the end of a run needs; a thread may do so while the run waits for its worker."""
    for name in (TEMPLATES["markdown"], TEMPLATES["terminal"], MACROS):
        environment(color=False).get_template(name)


@cache
def environment(*, color: bool = False) -> SandboxedEnvironment:
    """Jinja with our filters; it compiles each template once."""
    # Three formats, none HTML: every value goes through the filter of its place.
    jinja = sandbox(autoescape=False)
    jinja.filters.update(FILTERS, paint=painter(color=color))
    return jinja


def sandbox(*, autoescape: bool, finalize: Callable[[Any], Any] | None = None) -> SandboxedEnvironment:
    """Jinja without our filters; an unknown name is an error."""
    return SandboxedEnvironment(
        loader=FileSystemLoader(template_folder()),
        undefined=StrictUndefined,
        autoescape=autoescape,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=finalize,
    )


def template_folder() -> Path:
    """`export_gate/templates` in an installed wheel, else `templates/` in the root of the checkout."""
    packaged = Path(str(files("export_gate"))) / "templates"
    return packaged if packaged.is_dir() else packaged.parents[2] / "templates"
