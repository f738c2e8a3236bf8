"""`export-gate strength`: plant small faults in a model's ONNX file and count those that its control set notices."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import click

from export_gate.cli.options import config_option, find_config, python_option
from export_gate.cli.terminal import complain, say


def _seconds(_context: click.Context, _parameter: click.Parameter, text: str) -> float:
    from export_gate.config.units import TIME, parse_time

    seconds = parse_time(text) if text and re.fullmatch(TIME.pattern, text) else 0.0
    if not 0 < seconds <= TIME.maximum:
        raise click.BadParameter("expected a time above 0 such as 90s, 10m or 1h30m")
    return seconds


@click.command()
@click.argument("model")
@config_option
@python_option
@click.option("--target", metavar="NAME", help="Mutate this target's file. Default: the first ONNX target.")
@click.option(
    "--budget",
    "budget_s",
    callback=_seconds,
    default="60s",
    show_default=True,
    help="Stop trying mutants after this time.",
)
@click.option("--mutants", type=click.IntRange(1), help="Try at most this many mutants. Default: as time allows.")
@click.option("--seed", type=int, default=0, show_default=True, help="Choose other mutants and random inputs.")
@click.option("--fail-under", type=click.FloatRange(0, 100), help="Exit with 1 if less than this percentage is caught.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def strength(
    model: str,
    config: Path | None,
    python: str | None,
    target: str | None,
    budget_s: float,
    mutants: int | None,
    seed: int,
    fail_under: float | None,
    as_json: bool,
) -> None:
    """Measure how many small faults the control set of MODEL catches.

    Each fault is planted in a copy of the model's ONNX file: another weight, constant, operator, attribute, size, cast
    or output. Those that the control inputs miss are listed, with inputs that would have caught them.
    """
    from export_gate.config import load_config
    from export_gate.report.strength import require_answer, strength_json, strength_lines
    from export_gate.run.ask import ask
    from export_gate.run.order import Order
    from export_gate.run.plan import Selection, make_plan, onnx_target
    from export_gate.wall.repository import config_folder
    from export_gate.wall.request import MeasureStrength

    path = find_config(config)
    loaded = load_config(path)
    with tempfile.TemporaryDirectory(prefix="export-gate-") as folder:
        order = Order(config=path, python=python, folder=Path(folder), environment=dict(os.environ))
        targets = () if target is None else (target,)
        (job,) = make_plan(loaded, Selection(models=(model,), targets=targets), order.folder)
        chosen = onnx_target(job.contract)
        # The model's own time limit is for its run, to which the mutants' comes.
        timeout_s = job.contract.timeout_s + 2 * budget_s
        asked = replace(job, contract=replace(job.contract, targets=(chosen,), timeout_s=timeout_s))
        question = MeasureStrength(target=chosen.name, budget_s=budget_s, seed=seed, most=mutants)
        observed = ask((asked,), question, loaded.python, config_folder(path), order)
    found = require_answer(observed.answers, observed.run.models[0], chosen.name)
    if as_json:
        say(strength_json(found))
    else:
        say("\n".join(strength_lines(found, config_folder(path))))
    if fail_under is not None and (found.share is None or found.share < fail_under):
        complain(f"{model}: less than {fail_under:g}% of the mutants were caught")
        sys.exit(1)
