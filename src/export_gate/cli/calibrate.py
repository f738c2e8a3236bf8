"""`export-gate calibrate`: measure how far a model's artifacts are from eager, and suggest tolerances."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from pathlib import Path

import click

from export_gate.cli.options import config_option, find_config, python_option
from export_gate.cli.terminal import say


@click.command()
@click.argument("model")
@config_option
@python_option
def calibrate(model: str, config: Path | None, python: str | None) -> None:
    """Measure the rounding of MODEL and suggest tolerances.

    Each output of each target is compared with eager at every control input. The noise floor says how far eager itself
    is from float64 there.
    """
    from export_gate.config import load_config
    from export_gate.report.calibration import calibration_lines
    from export_gate.rules.measure import measure
    from export_gate.run.ask import ask
    from export_gate.run.order import Order
    from export_gate.run.plan import Selection, make_plan
    from export_gate.wall.contract import Tolerance
    from export_gate.wall.repository import config_folder
    from export_gate.wall.request import Observe

    path = find_config(config)
    loaded = load_config(path)
    exact = Tolerance(atol=0.0, rtol=0.0)  # noise is measured where a difference exceeds its tolerance
    with tempfile.TemporaryDirectory(prefix="export-gate-") as folder:
        order = Order(config=path, python=python, folder=Path(folder), environment=dict(os.environ))
        (job,) = make_plan(loaded, Selection(models=(model,)), order.folder)
        # A target's own tolerance would take precedence over the exact one.
        targets = tuple(replace(target, tolerance=Tolerance()) for target in job.contract.targets)
        asked = replace(job, contract=replace(job.contract, targets=targets, tolerance=exact))
        observed = ask((asked,), Observe(diagnosis=False), loaded.python, config_folder(path), order)
    say("\n".join(calibration_lines(measure(job.contract, observed.run.models[0]))))
