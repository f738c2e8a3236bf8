"""`export-gate report`: render recorded results again, in any format."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from export_gate.cli.options import results_argument, save_text
from export_gate.cli.terminal import color, show_document


@click.command()
@results_argument
@click.option(
    "--format",
    "format_",
    type=click.Choice(["terminal", "markdown", "html", "json", "junit", "sarif", "comment", "summary"]),
    default="terminal",
    show_default=True,
    help="Choose the format of the report.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write to this file instead of the terminal.",
)
def report(results: Path, format_: str, output: Path | None) -> None:
    """Render the report of RESULTS (a results.json) again.

    The verdict sets the exit code.
    """
    from export_gate.outcome import judging
    from export_gate.report.formats import formatted

    outcome = judging.rejudge(results, lambda contract: contract)
    text = formatted(outcome.results, outcome.report, format_, color=output is None and color())
    if output is None:
        show_document(text)
    else:
        save_text(text, output)
    sys.exit(outcome.judgement.exit_code)
