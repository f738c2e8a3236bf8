"""Commands over results that are there: render, judge again, lock, join, publish."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import click

from export_gate.cli.options import config_option, fail_on_option, find_config, save_text
from export_gate.cli.terminal import color, show
from export_gate.wall.errors import UserError


@click.command()
@click.argument("results", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "format_",
    type=click.Choice(["terminal", "markdown", "html", "json", "junit", "sarif", "comment", "summary"]),
    default="terminal",
    show_default=True,
)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="A file instead of the terminal.")
def report(results: Path, format_: str, output: Path | None) -> None:
    """Render RESULTS (a results.json) again; exits by its verdict."""
    from export_gate.outcome import judging
    from export_gate.report.formats import formatted

    outcome = judging.rejudge(results, lambda contract: contract)
    text = formatted(outcome.results, outcome.report, format_, color=output is None and color())
    if output is None:
        click.echo(text, nl=False, color=True if color() else None)
    else:
        save_text(text, output)
    sys.exit(outcome.judgement.exit_code)


@click.command(name="judge")
@click.argument("results", type=click.Path(path_type=Path))
@click.option("-c", "--config", type=click.Path(path_type=Path), help="Take tolerances and output promises from here.")
@click.option("--atol", type=click.FloatRange(min=0), help="Absolute tolerance instead of the recorded one.")
@click.option("--rtol", type=click.FloatRange(min=0), help="Relative tolerance instead of the recorded one.")
@click.option("--target", "targets", multiple=True, help="Only for this target; may be repeated.")
@click.option(
    "--today", type=click.DateTime(["%Y-%m-%d"]), help="The date (UTC) that waivers are held against; default today's."
)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write the new results here.")
def judge_(
    results: Path,
    config: Path | None,
    atol: float | None,
    rtol: float | None,
    targets: tuple[str, ...],
    today: datetime | None,
    output: Path | None,
) -> None:
    """Judge RESULTS again, with other tolerances or on another day, without exporting."""
    from export_gate.config import load_config
    from export_gate.outcome import judging
    from export_gate.report.results import write_results

    if config is None and atol is None and rtol is None and today is None:
        raise click.UsageError("nothing to change: give --atol, --rtol, --config or --today")
    by_config: Callable[[Any], Any] = judging.with_config(load_config(config)) if config else lambda contract: contract
    by_option = judging.with_tolerance(atol, rtol, targets)
    day = (today or datetime.now(timezone.utc)).date().isoformat()
    outcome = judging.rejudge(results, lambda contract: by_option(by_config(contract)), day)
    planned = sorted({target.name for contract in outcome.results.contracts for target in contract.targets})
    for name in targets:
        if name not in planned:
            raise UserError(f"{results}: no model has the target {name!r}; it has {', '.join(planned)}")
    if output is not None:
        write_results(outcome.results, output)
    show(outcome)
    sys.exit(outcome.judgement.exit_code)


@click.command(name="lock")
@click.argument("results", required=False, type=click.Path(path_type=Path))
@config_option
def lock_(results: Path | None, config: Path | None) -> None:
    """Write the interfaces and margins of RESULTS (default: the last run's) to export-gate.lock."""
    from export_gate.outcome.locking import write_lock_of

    path = find_config(config)
    written, count = write_lock_of(results or path.parent / ".export-gate" / "results.json", path)
    click.echo(f"{written}: written, {count} {'model' if count == 1 else 'models'}")


@click.command()
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", required=True, type=click.Path(path_type=Path, dir_okay=False), help="Write the results here."
)
def merge(results: tuple[Path, ...], output: Path) -> None:
    """Join the RESULTS of a run's shards, judge them as one and report; exits by the verdict."""
    from export_gate.outcome import judging
    from export_gate.report.results import write_results

    outcome = judging.join(results)
    write_results(outcome.results, output)
    show(outcome)
    sys.exit(outcome.judgement.exit_code)


@click.command()
@click.argument("results", type=click.Path(path_type=Path))
@click.option(
    "--comment",
    "mode",
    type=click.Choice(["always", "changes", "on-failure", "never"]),
    default="always",
    show_default=True,
    help="When the pull request gets a comment.",
)
@click.option("--comment-id", default="", help="Tells apart the comments of several jobs; default export-gate.")
@click.option("--template", type=click.Path(path_type=Path), help="A Jinja template of your own for the comment.")
@fail_on_option
@click.option("--artifact-url", default="", help="Where the uploaded report and files are, for a link.")
@click.option(
    "--annotations/--no-annotations", default=True, help="Notes beside the code; off where another job has them."
)
@click.option("--log", type=click.Path(path_type=Path), help="What the run printed: says why there are no results.")
@click.option("--allow-pull-request-target", is_flag=True, help="Work under pull_request_target too.")
@click.option(
    "--stage",
    type=click.Choice(["one", "two"]),
    default="one",
    show_default=True,
    help="Two: report the results of a fork's run under workflow_run.",
)
def publish(results: Path, stage: str, allow_pull_request_target: bool, **options: Any) -> None:
    """Publish RESULTS on GitHub: comment, job summary, annotations, outputs; exits by the verdict.

    Reads the GITHUB_ variables of the runner, and the token from GITHUB_TOKEN. Never runs the project's code.
    """
    from export_gate.github.command import run_publish
    from export_gate.github.shown import Publication

    options["comment_id"] = options["comment_id"] or "export-gate"
    order = Publication(results=results, **options)
    code = run_publish(order, os.environ, click.echo, stage=stage, allow_pull_request_target=allow_pull_request_target)
    sys.exit(code)
