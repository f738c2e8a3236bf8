"""Commands around conformance kits: write one, replay one."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from export_gate.cli.options import config_option, find_config, python_option
from export_gate.cli.terminal import follow, show


@click.command(name="kit")
@click.argument("model")
@config_option
@python_option
@click.option(
    "--target",
    "targets",
    multiple=True,
    type=click.Choice(["onnx", "pt2"]),
    help="Hold this target's file as well; the ONNX file is always there.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder to write; default MODEL-kit here.",
)
@click.option("--force", is_flag=True, help="Even of a model that is not verified; replaces a folder that is no kit.")
@click.option("-q", "--quiet", is_flag=True, help="No progress, only what was written.")
def kit_(
    model: str,
    config: Path | None,
    python: str | None,
    targets: tuple[str, ...],
    output: Path | None,
    force: bool,
    quiet: bool,
) -> None:
    """Verify MODEL and write its conformance kit: artifact, control inputs, expected outputs, tolerances.

    `replay` holds the kit against ONNX Runtime wherever it is deployed, without torch.
    """
    from export_gate.kit.write import make_kit
    from export_gate.run.order import Order
    from export_gate.run.plan import Selection

    order = Order(
        config=find_config(config),
        selection=Selection(models=(model,), targets=tuple(dict.fromkeys(("onnx", *targets)))),
        python=python,
        environment=dict(os.environ),
    )
    place = output or Path(f"{model}-kit")
    with follow(quiet=quiet) as announce:
        made = make_kit(order, place, announce, force=force)
    if made.kit is None:
        show(made.outcome)
        hint = "" if force else "; --force writes one that says so"
        click.echo(f"{place}: no kit was written: {made.why_not}{hint}", err=True)
        sys.exit(made.outcome.judgement.exit_code or 1)
    if made.why_not:
        click.echo(f"warning: {made.why_not}, and the kit says so", err=True)
    count = f"{made.kit.cases} data set{'' if made.kit.cases == 1 else 's'}"
    click.echo(f"{place}: written, {model} with {count}; kit.json has sha256 {made.sha256}")


@click.command(name="replay")
@click.argument("kit", type=click.Path(path_type=Path))
@click.option(
    "--provider",
    "providers",
    multiple=True,
    default=["CPUExecutionProvider"],
    show_default=True,
    help="ONNX Runtime execution provider; may be repeated, in order of preference.",
)
@click.option("--python", metavar="PATH", help="The interpreter that has numpy, onnx and onnxruntime.")
def replay_(kit: Path, providers: tuple[str, ...], python: str | None) -> None:
    """Hold KIT against ONNX Runtime on this machine, without torch: files, then every data set.

    Exit codes: 0 conforms, 1 does not, 2 the kit was changed or cannot be replayed here.
    """
    from export_gate.kit.replay import replay, report
    from export_gate.report.escape import one_line

    replayed = replay(kit, providers, python, os.environ)
    for line in report(replayed):
        click.echo(one_line(line))
    sys.exit(replayed.exit_code)
