"""`export-gate lock`: write the interface lock from recorded results."""

from __future__ import annotations

from pathlib import Path

import click

from export_gate.cli.options import config_option, find_config
from export_gate.cli.terminal import say
from export_gate.wall.words import count


@click.command()
@click.argument("results", required=False, type=click.Path(path_type=Path))
@config_option
def lock(results: Path | None, config: Path | None) -> None:
    """Write export-gate.lock from RESULTS (default: the last run).

    The lock records the interface and the margins of each model.
    """
    from export_gate.outcome.locking import write_lock_of

    path = find_config(config)
    written, models = write_lock_of(results or path.parent / ".export-gate" / "results.json", path)
    say(f"{written}: written, {count(models, 'model')}")
