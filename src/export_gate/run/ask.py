"""Questions about one model that stop before an export: its control set, forward's signature."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from export_gate.config import load_config
from export_gate.run.interpreter import find_interpreter
from export_gate.run.observe import Observed, observe
from export_gate.run.order import Order, worker_request
from export_gate.run.plan import Selection, make_plan
from export_gate.wall.contract import Job
from export_gate.wall.errors import UserError
from export_gate.wall.repository import config_folder
from export_gate.wall.request import ListControls, Task


def ask_controls(config: Path, model: str, order: Order, question: ListControls) -> Observed:
    """Ask the worker for the model's control set, or one input of it.

    Raises:
        UserError: the model cannot be loaded or has no such control input.
    """
    loaded = load_config(config)
    jobs = make_plan(loaded, Selection(models=(model,)), order.folder)
    return ask(jobs, question, loaded.python, config_folder(config), order)


def ask(jobs: tuple[Job, ...], question: Task, python: str | None, folder: Path, order: Order) -> Observed:
    """Start a worker for one question about each model; the interpreter is that of a config in the folder.

    Raises:
        UserError: a model cannot be loaded.
    """
    found = find_interpreter(order.python, python, folder, order.environment)
    with tempfile.TemporaryDirectory(prefix="export-gate-") as logs:
        request = replace(worker_request(order, jobs, question), log_folder=logs)
        observed = observe(request, found.path, order.environment)
    for seen in observed.run.models:
        if seen.problem is not None:
            raise UserError(seen.problem.message, seen.problem.hint)
        if seen.failure is not None:
            raise UserError(f"{seen.model}: {seen.failure.type}: {seen.failure.message}", seen.failure.trace)
    return observed
