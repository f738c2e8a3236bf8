"""`export-gate controls`: list a model's control inputs, or print one."""

from __future__ import annotations

import os
from pathlib import Path

import click

from export_gate.cli.options import config_option, find_config, python_option
from export_gate.cli.terminal import say


@click.command()
@click.argument("model")
@config_option
@python_option
@click.option("--show", "shown", metavar="NAME", help="Print this control input instead of the list.")
@click.option(
    "--save",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the control input that --show names to this .npz file.",
)
def controls(model: str, config: Path | None, python: str | None, shown: str | None, save: Path | None) -> None:
    """List the control inputs of MODEL in order."""
    from export_gate.report.controls import listing, one_input
    from export_gate.run.ask import ask_controls
    from export_gate.run.order import Order
    from export_gate.wall.request import ListControls

    if save is not None and shown is None:
        raise click.UsageError("--save needs --show NAME")
    path = find_config(config)
    order = Order(config=path, python=python, environment=dict(os.environ))
    question = ListControls(show=shown, save=str(save.resolve()) if save else None)
    observed = ask_controls(path, model, order, question)
    lines = one_input(observed.answers[0]) if shown else listing(observed.run.models[0])
    say("\n".join(lines))
