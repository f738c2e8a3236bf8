"""`export-gate init`: write a starter config for some models."""

from __future__ import annotations

import os
from pathlib import Path

import click

from export_gate.cli.options import DEFAULT_CONFIGS, python_option, save_text
from export_gate.cli.terminal import say
from export_gate.wall.errors import UserError


@click.command()
@click.argument("factories", metavar="FACTORY...", nargs=-1)
@click.option(
    "-c",
    "--config",
    "-o",
    "--output",
    "config",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write this config. One that exists is extended: it keeps its lines and gets further models."
    " Default: export-gate.yml.",
)
@click.option("--kwargs", metavar="KEY=VALUE", multiple=True, help="Pass an argument to the factory. Repeatable.")
@click.option(
    "--artifact",
    type=click.Path(exists=True, dir_okay=False),
    help="Verify this ONNX file, and take names, dtypes and sizes of the inputs from it. A TorchScript file needs no"
    " FACTORY: it becomes the reference.",
)
@click.option("--force", is_flag=True, help="Replace a config that exists.")
@python_option
def init(
    factories: tuple[str, ...],
    config: Path | None,
    kwargs: tuple[str, ...],
    artifact: str | None,
    force: bool,
    python: str | None,
) -> None:
    """Write a starter config for the models that the factories make.

    FACTORY is module:attribute or path.py:attribute.
    """
    from export_gate.report.commands import Caller
    from export_gate.run.order import Order
    from export_gate.starter import scripted
    from export_gate.starter import write as starter
    from export_gate.starter.arguments import keyword_arguments

    if artifact is not None and len(factories) > 1:
        raise UserError("--artifact: expected one factory, the reference of the file", "run init once for each file")
    path = config or next((path for path in map(Path, DEFAULT_CONFIGS) if path.exists()), Path(DEFAULT_CONFIGS[0]))
    # Before the file is written, after which it always exists.
    is_new = force or not path.exists()
    wish = starter.Wish(factories=factories, kwargs=keyword_arguments(kwargs), artifact=artifact, is_fresh=force)
    if artifact is not None and scripted.is_torchscript(Path(artifact)):
        wish = scripted.as_reference(wish, artifact, path)
    if not wish.factories:
        raise click.UsageError("Missing argument 'FACTORY...'.")
    text = starter.starter_config(wish, path, Order(config=path, python=python, environment=dict(os.environ)))
    save_text(text, path)
    caller = Caller(config=str(path))
    done = "written" if is_new else "extended"
    say(caller.located(f"{path}: {done} and valid; review it, then run `export-gate run`"))
    lock = "Once it is green, `export-gate lock` records the interface: a change that breaks callers is then found."
    say(caller.located(lock))
