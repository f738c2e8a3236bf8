"""Render the page as one self-contained HTML file: nothing is fetched, and it has no scripts."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2.sandbox import SandboxedEnvironment
from markupsafe import Markup, escape

from export_gate.report import filters
from export_gate.report.charts.shapes import coordinate
from export_gate.report.escape import code_spans, one_line, visible
from export_gate.report.page import build_page
from export_gate.report.record import Report
from export_gate.report.render import sandbox
from export_gate.report.results import Results

TEMPLATE = "report.html.j2"

SYMBOLS = {
    "verified": "✔", "violations": "✘", "problem": "⊘", "broken": "⊘",
    "ok": "✔", "failed": "✘", "warned": "▲", "waived": "◆", "skipped": "○", "moot": "\N{EN DASH}", "not-applicable": "",
    "violation": "✘", "warning": "▲", "note": "●",
}  # fmt: skip
"""Symbols of verdicts, states and severities, in characters that every font has."""
WORDS = {
    "verified": "verified", "violations": "violations", "problem": "could not be checked", "broken": "no verdict",
    "ok": "verified", "failed": "failed", "warned": "warning", "waived": "waived", "skipped": "not run",
    "moot": "means nothing after the earlier failure", "not-applicable": "not applicable",
    "violation": "violation", "warning": "warning", "note": "note",
}  # fmt: skip
"""The same as words, for screen readers."""


def render_html(results: Results, report: Report) -> str:
    """The whole page."""
    return environment().get_template(TEMPLATE).render(page=build_page(results, report), report=report)


def compile_page() -> None:
    """Compile the page's template, as `render.compile_templates` does the others."""
    environment().get_template(TEMPLATE)


@cache
def environment() -> SandboxedEnvironment:
    """Jinja that escapes every value for HTML and makes invisible characters visible."""
    jinja = sandbox(autoescape=True, finalize=_shown)
    # Not the filters that escape: Jinja escapes every value of this page itself.
    numbers = ("number", "measured", "share", "size", "count", "duration", "plural", "tally", "how_often")
    jinja.filters.update({name: filters.FILTERS[name] for name in numbers})
    jinja.filters.update(
        prose=prose, lines=lines, at=coordinate, symbol=SYMBOLS.__getitem__, word=WORDS.__getitem__, one_line=one_line
    )
    return jinja


def _shown(value: Any) -> Any:
    """Filter every printed value: replace characters without a glyph."""
    # Markup comes from `prose`, `lines` and macros, in which such characters are replaced already.
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def prose(text: object) -> Markup:
    """A sentence that quotes code in backticks, as our rules write them."""
    spans = code_spans(one_line(text))
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if is_code else escape(part) for part, is_code in spans
    )


def lines(text: object) -> Markup:
    """Text that keeps its line breaks, for preformatted elements."""
    return escape(visible(str(text)))
