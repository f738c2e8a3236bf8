"""`export-gate init`: write a starter config for a model."""

from __future__ import annotations

import os
from pathlib import Path

import click

from export_gate.cli.options import python_option, save_text
from export_gate.cli.terminal import say
from export_gate.report.commands import Caller
from export_gate.wall.errors import UserError


@click.command()
@click.argument("factory")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("export-gate.yml"),
    show_default=True,
    help="Write the config to this file.",
)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@python_option
def init(factory: str, output: Path, force: bool, python: str | None) -> None:
    """Write a starter config for the model that FACTORY makes.

    FACTORY is module:attribute or path.py:attribute.
    """
    from export_gate.run.order import Order
    from export_gate.starter import write as starter

    if output.exists() and not force:
        raise UserError(f"{output}: already exists; use --force to overwrite")
    order = Order(config=output, python=python, environment=dict(os.environ))
    text = starter.starter_config(factory, output, order)
    save_text(text, output)
    caller = Caller(config=str(output))
    say(caller.located(f"{output}: written and valid; review it, then run `export-gate run`"))
    lock = "Once it is green, `export-gate lock` records the interface: a change that breaks callers is then found."
    say(caller.located(lock))
