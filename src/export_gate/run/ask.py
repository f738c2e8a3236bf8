"""Questions about one model that stop before an export: its control set, forward's signature."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from export_gate.config import load_config
from export_gate.run.interpreter import find_interpreter
from export_gate.run.observe import observe
from export_gate.run.order import Order, worker_request
from export_gate.run.plan import Selection, make_plan
from export_gate.wall.contract import Job
from export_gate.wall.errors import UserError


def ask(config: Path, model: str, order: Order, **question: Any) -> Any:
    """Put a question about one model to the worker: its control set, or one input of it.

    Raises:
        UserError: the model cannot be loaded or has no such control input.
    """
    loaded = load_config(config)
    jobs = make_plan(loaded, Selection(models=(model,)), order.folder)
    return question_worker(jobs, loaded.python, config.resolve().parent, order, **question)


def question_worker(jobs: tuple[Job, ...], python: str | None, folder: Path, order: Order, **question: Any) -> Any:
    """Start a worker for one question; its observation and its answers.

    Raises:
        UserError: the model cannot be loaded.
    """
    found = find_interpreter(order.python, python, folder, order.environment)
    with tempfile.TemporaryDirectory(prefix="export-gate-") as logs:
        request = replace(worker_request(order, jobs), log_folder=logs, **question)
        observed = observe(request, found.path, order.environment)
    seen = observed.run.models[0]
    if seen.problem is not None:
        raise UserError(seen.problem.message, seen.problem.hint)
    if seen.failure is not None:
        raise UserError(f"{seen.model}: {seen.failure.type}: {seen.failure.message}", seen.failure.trace)
    return observed
