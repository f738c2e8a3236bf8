"""`export-gate validate`: check configs without running anything."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import click

from export_gate.cli.options import config_option, find_config
from export_gate.cli.terminal import say
from export_gate.wall.errors import UserError
from export_gate.wall.words import count


@click.command()
@click.argument("configs", nargs=-1, type=click.Path(path_type=Path))
@config_option
def validate(configs: tuple[Path, ...], config: Path | None) -> None:
    """Check configs without running anything.

    CONFIGS defaults to export-gate.yml in the current folder.
    """
    from export_gate.config import load_config
    from export_gate.config.limits import require_short_waivers

    mistakes = []
    # pre-commit names the files that changed; without any, the usual config is meant.
    for path in configs if configs and config is None else (*configs, find_config(config)):
        try:
            loaded = load_config(path)
            require_short_waivers(loaded, datetime.now(timezone.utc).date(), loaded.waivers_max_days)
            say(f"{path}: valid, {count(len(loaded.models), 'model')}")
        except UserError as error:
            mistakes.append(error.text)
    if mistakes:
        raise UserError("\n".join(mistakes))
