"""All report formats, by name."""

from __future__ import annotations

import json
from collections.abc import Callable

from export_gate.report.escape import inert_json, inert_xml
from export_gate.report.html import render_html
from export_gate.report.junit import junit
from export_gate.report.record import Report
from export_gate.report.render import TEMPLATES, render
from export_gate.report.results import Results
from export_gate.report.sarif import sarif
from export_gate.wall.codec import encode

DOCUMENTS: dict[str, Callable[[Results, Report], str]] = {
    "html": lambda results, report: inert_xml(render_html(results, report)),
    "json": lambda results, _: inert_json(json.dumps(encode(results), indent=1)) + "\n",
    "junit": lambda results, report: inert_xml(junit(results, report)),
    "sarif": lambda results, report: inert_json(sarif(results, report)),
}
"""Formats that need the results in addition to the report; none has colours or a limit, and each is inert in a log."""


def formatted(results: Results, report: Report, format_: str, *, color: bool = False) -> str:
    """The run in one of `DOCUMENTS` or as one of `TEMPLATES`."""
    if format_ in DOCUMENTS:
        return DOCUMENTS[format_](results, report)
    (known,) = (name for name in TEMPLATES if name == format_)
    return render(report, known, color=color)
