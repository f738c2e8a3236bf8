"""`export-gate publish`: put results on GitHub."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from export_gate.cli.options import fail_on_option, results_argument
from export_gate.cli.terminal import order


@click.command()
@results_argument
@click.option(
    "--comment",
    "mode",
    type=click.Choice(["always", "changes", "on-failure", "never"]),
    default="always",
    show_default=True,
    help="Choose when to comment on the pull request.",
)
@click.option(
    "--comment-id",
    default="",
    help="Give the comment this name, which keeps the comments of several jobs apart. Default: export-gate.",
)
@click.option("--template", type=click.Path(path_type=Path), help="Render the comment with this Jinja template.")
@fail_on_option
@click.option("--artifact-url", default="", help="Link to this URL for the uploaded report and files.")
@click.option(
    "--annotations/--no-annotations",
    default=True,
    help="Annotate the code with the findings, or leave that to another job.",
)
@click.option(
    "--log", type=click.Path(path_type=Path), help="Read this output of the run to explain why there are no results."
)
@click.option(
    "--exit-code", type=int, help="Compare with this exit code of the run, and do not believe results that are better."
)
@click.option("--allow-pull-request-target", is_flag=True, help="Allow the event pull_request_target.")
@click.option(
    "--stage",
    type=click.Choice(["one", "two"]),
    default="one",
    show_default=True,
    help="Select two to report the results of a fork's run under workflow_run.",
)
def publish(results: Path, stage: str, allow_pull_request_target: bool, **options: Any) -> None:
    """Publish RESULTS on GitHub.

    Writes a comment, a job summary, annotations and outputs.
    Reads the GITHUB_ variables of the runner, and the token from GITHUB_TOKEN. Never runs the project's code.
    The verdict sets the exit code.
    """
    from export_gate.github.command import run_publish
    from export_gate.github.shown import Publication

    # Not as click's default: the action always passes its input, which may be empty.
    options["comment_id"] = options["comment_id"] or "export-gate"
    publication = Publication(results=results, **options)
    code = run_publish(publication, os.environ, order, stage=stage, allow_pull_request_target=allow_pull_request_target)
    sys.exit(code)
