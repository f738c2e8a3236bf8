"""`export-gate kit`: verify a model and write its conformance kit."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from export_gate.cli.options import config_option, find_config, python_option, quiet_option
from export_gate.cli.terminal import complain, follow, say, show
from export_gate.wall.words import count


@click.command()
@click.argument("model")
@config_option
@python_option
@click.option(
    "--target",
    "targets",
    multiple=True,
    help="Add this target's file. Can be repeated. A kit always has one ONNX file: of several, choose one here.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the kit to this folder. Default: MODEL-kit.",
)
@click.option(
    "--force", is_flag=True, help="Write the kit even if the model is unverified; overwrite an existing folder."
)
@quiet_option
def kit(
    model: str,
    config: Path | None,
    python: str | None,
    targets: tuple[str, ...],
    output: Path | None,
    force: bool,
    quiet: bool,
) -> None:
    """Verify MODEL and write its conformance kit.

    The kit holds the artifact, control inputs, expected outputs and tolerances.
    `export-gate replay` checks it with ONNX Runtime wherever it is deployed, without torch.
    """
    from export_gate.kit.write import make_kit
    from export_gate.run.order import Order
    from export_gate.run.plan import Selection

    order = Order(
        config=find_config(config),
        selection=Selection(models=(model,), targets=targets),
        python=python,
        environment=dict(os.environ),
    )
    place = output or Path(f"{model}-kit")
    with follow(quiet=quiet) as announce:
        made = make_kit(order, place, announce, force=force)
    if made.kit is None:
        show(made.outcome)
        hint = "" if force else "; --force writes one that says so"
        complain(f"{place}: no kit was written: {made.why_not}{hint}")
        # A model with waivers is verified (0), but whoever asked for a kit got none.
        sys.exit(made.outcome.judgement.exit_code or 1)
    if made.why_not:
        complain(f"warning: {made.why_not}, and the kit says so")
    say(f"{place}: written, {model} with {count(made.kit.cases, 'data set')}; kit.json has sha256 {made.sha256}")
