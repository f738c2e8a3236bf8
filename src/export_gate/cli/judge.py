"""`export-gate judge`: judge recorded results again, on other terms."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import click

from export_gate.cli.options import results_argument, save_results
from export_gate.cli.terminal import show
from export_gate.wall.errors import UserError


@click.command()
@results_argument
@click.option(
    "-c", "--config", type=click.Path(path_type=Path), help="Take tolerances and output promises from this config."
)
@click.option("--atol", type=click.FloatRange(min=0), help="Use this absolute tolerance instead of the recorded one.")
@click.option("--rtol", type=click.FloatRange(min=0), help="Use this relative tolerance instead of the recorded one.")
@click.option("--target", "targets", multiple=True, help="Change the tolerance of this target only. Can be repeated.")
@click.option("--today", type=click.DateTime(["%Y-%m-%d"]), help="Judge waivers as of this date (UTC). Default: today.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write the new results to this file."
)
def judge(
    results: Path,
    config: Path | None,
    atol: float | None,
    rtol: float | None,
    targets: tuple[str, ...],
    today: datetime | None,
    output: Path | None,
) -> None:
    """Judge RESULTS again, with other tolerances or on another day.

    Nothing is exported again. The new verdict sets the exit code.
    """
    from export_gate.config import load_config
    from export_gate.outcome import judging

    if config is None and atol is None and rtol is None and today is None:
        raise click.UsageError("nothing to change: give --atol, --rtol, --config or --today")
    terms = load_config(config) if config else None
    by_config: Callable[[Any], Any] = judging.with_config(terms) if terms else lambda contract: contract
    by_option = judging.with_tolerance(atol, rtol, targets)
    day = (today or datetime.now(timezone.utc)).date().isoformat()
    outcome = judging.rejudge(
        results, lambda contract: by_option(by_config(contract)), day, terms.fail_on if terms else None
    )
    # A mistyped target would change nothing, and the old verdict would look like the new one.
    planned = sorted({target.name for contract in outcome.results.contracts for target in contract.targets})
    for name in targets:
        if name not in planned:
            raise UserError(f"{results}: no model has the target {name!r}; it has {', '.join(planned)}")
    if output is not None:
        save_results(outcome.results, output)
    show(outcome)
    sys.exit(outcome.judgement.exit_code)
