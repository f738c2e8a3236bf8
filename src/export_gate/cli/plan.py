"""`export-gate plan`: spread models over the machines of a GitHub workflow."""

from __future__ import annotations

from pathlib import Path

import click

from export_gate.cli.options import config_option, find_config
from export_gate.cli.terminal import say


@click.command()
@click.argument("models", nargs=-1)
@config_option
@click.option("--target", "targets", multiple=True, help="Plan only this target. Can be repeated.")
@click.option("--shards", type=click.IntRange(1, 256), required=True, help="Spread the models over this many machines.")
def plan(models: tuple[str, ...], config: Path | None, targets: tuple[str, ...], shards: int) -> None:
    """Print a workflow matrix that spreads MODELS over machines.

    MODELS defaults to all. The matrix is one line of JSON, for a GitHub workflow.
    """
    from export_gate.config import load_config
    from export_gate.run.plan import Selection, select
    from export_gate.run.shards import matrix

    contracts = select(load_config(find_config(config)), Selection(models=models, targets=targets))
    say(matrix(contracts, shards))
