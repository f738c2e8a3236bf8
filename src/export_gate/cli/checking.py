"""Commands that run the project's code: verify models, list control inputs, write a starter config."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from export_gate.cli.options import (
    config_option,
    fail_on_option,
    find_config,
    folder_option,
    python_option,
    save_text,
)
from export_gate.cli.terminal import follow, show
from export_gate.wall.contract import TARGET_NAMES
from export_gate.wall.errors import UserError


@click.command()
@click.argument("models", nargs=-1)
@config_option
@python_option
@folder_option
@click.option("--target", "targets", multiple=True, help="Only this target; may be repeated.")
@click.option(
    "--skip-target",
    "skipped",
    multiple=True,
    type=click.Choice(TARGET_NAMES),
    help="Not this target, if it is planned at all; may be repeated.",
)
@click.option("--case", "cases", multiple=True, metavar="GLOB", help="Only these control inputs; may be repeated.")
@click.option(
    "--lock-base", metavar="COMMIT", help="Take the interface lock from this commit, not from the working tree."
)
@click.option("--shard", metavar="N/TOTAL", help="Only this part of the models, e.g. 1/4; see `plan`.")
@fail_on_option
@click.option("-j", "--jobs", type=click.IntRange(1, 64), help="Models at a time; default one per core.")
@click.option("-q", "--quiet", is_flag=True, help="No progress, only the report.")
def run(
    models: tuple[str, ...],
    config: Path | None,
    python: str | None,
    folder: Path | None,
    targets: tuple[str, ...],
    skipped: tuple[str, ...],
    cases: tuple[str, ...],
    lock_base: str | None,
    shard: str | None,
    fail_on: str,
    jobs: int | None,
    quiet: bool,
) -> None:
    """Export and verify MODELS (default: all) and report."""
    from export_gate import pipeline
    from export_gate.outcome import judging
    from export_gate.run.order import Order, default_parallel
    from export_gate.run.plan import Selection
    from export_gate.run.pushing import differences
    from export_gate.run.shards import parse_shard

    path = find_config(config)
    order = Order(
        config=path,
        selection=Selection(models=models, targets=targets, skipped=skipped, cases=cases),
        python=python,
        parallel=jobs or default_parallel(),
        folder=folder or path.parent / ".export-gate",
        environment=dict(os.environ),
        shard=parse_shard(shard) if shard else None,
        lock_base=lock_base or None,
    )
    with follow(quiet=quiet) as announce:
        outcome = pipeline.run(order, announce)
    if fail_on == "warning":
        outcome = judging.fail_on_warnings(outcome)
    show(outcome, order.folder)
    for line in outcome.notes:
        click.echo(f"note: {line}", err=True)
    for line in differences(order.environment, path.resolve().parent):
        click.echo(f"note: {line}", err=True)
    sys.exit(outcome.judgement.exit_code)


@click.command()
@click.argument("model")
@config_option
@python_option
@click.option("--show", "shown", metavar="NAME", help="Print one control input.")
@click.option("--save", type=click.Path(path_type=Path, dir_okay=False), help="With --show: write it as .npz.")
def controls(model: str, config: Path | None, python: str | None, shown: str | None, save: Path | None) -> None:
    """List the control inputs of MODEL, in order."""
    from export_gate.report.controls import listing, one_input
    from export_gate.run import ask as asking
    from export_gate.run.order import Order

    if save is not None and shown is None:
        raise click.UsageError("--save needs --show NAME")
    path = find_config(config)
    order = Order(config=path, python=python, environment=dict(os.environ))
    question = {"action": "controls", "show": shown, "save": str(save.resolve()) if save else None}
    observed = asking.ask(path, model, order, **question)
    lines = one_input(observed.answers[0]) if shown else listing(observed.run.models[0])
    click.echo("\n".join(lines))


@click.command()
@click.argument("factory")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("export-gate.yml"),
    show_default=True,
)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@python_option
def init(factory: str, output: Path, force: bool, python: str | None) -> None:
    """Write a starter config for FACTORY (module:attribute or path.py:attribute)."""
    from export_gate.run.order import Order
    from export_gate.starter import write as starter

    if output.exists() and not force:
        raise UserError(f"{output}: is there already; --force overwrites it")
    order = Order(config=output, python=python, environment=dict(os.environ))
    text = starter.starter_config(factory, output, order)
    save_text(text, output)
    click.echo(f"{output}: written and valid; look it over, then `export-gate run`")
