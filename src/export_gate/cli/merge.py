"""`export-gate merge`: join the results of a run's shards."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from export_gate.cli.options import save_results
from export_gate.cli.terminal import show


@click.command()
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the joined results to this file.",
)
def merge(results: tuple[Path, ...], output: Path) -> None:
    """Join the RESULTS of a run's shards and judge them as one.

    The joint verdict sets the exit code.
    """
    from export_gate.outcome import deadline, judging

    with deadline.deadline(deadline.JUDGING_S):
        outcome = judging.join(results)
    save_results(outcome.results, output)
    show(outcome)
    sys.exit(outcome.judgement.exit_code)
