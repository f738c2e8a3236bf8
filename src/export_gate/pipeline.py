"""The product on one screen: config -> plan -> observe -> judge -> report.

`export-gate.yml` becomes contracts (`config/`), the selected ones become jobs (`plan`), the worker turns jobs into
observations under the project's own interpreter (`observe`, and everything in `worker/` beyond the wall), except those
of unchanged models, which the cache has (`recall`). The rules turn observations into findings and a verdict (`rules/`),
and the report turns both into text (`report/`). Only `cli` prints or exits.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

from export_gate import __version__
from export_gate.cache.memory import Ran, keep_verdicts, open_cache
from export_gate.cache.recall import Recalled, recall
from export_gate.config import load_config
from export_gate.config.limits import require_short_waivers
from export_gate.lock.find import find_lock
from export_gate.outcome.folder import prepare_folder, prepare_reports, publish
from export_gate.outcome.judging import Outcome, judged
from export_gate.outcome.saved_case import save_smallest
from export_gate.report.results import Results
from export_gate.rules.judge import Terms
from export_gate.run.change import base_of, find_change
from export_gate.run.checkout import find_checkout, head_revision
from export_gate.run.interpreter import Interpreter, find_interpreter
from export_gate.run.launch import Listener
from export_gate.run.observe import Observed, observe
from export_gate.run.order import Order, worker_request
from export_gate.run.plan import make_plan, unselected_targets
from export_gate.run.seal import remove_unfinished, sealed
from export_gate.run.shards import jobs_of
from export_gate.wall.contract import Job
from export_gate.wall.observation import RunObservation
from export_gate.wall.repository import config_folder
from export_gate.wall.request import Observe, Task

_OBSERVE = Observe()


def run(order: Order, announce: Callable[[Interpreter, tuple[Job, ...]], Listener]) -> Outcome:
    """Check the order's models and write what was found.

    Args:
        order: what to check.
        announce: called with the interpreter and the jobs before the worker starts; returns a listener for its events.

    Raises:
        UserError: the config, the selection or the interpreter is not usable.
        GateError: the worker broke down or the results cannot be written.
    """
    outcome, _ = verify(order, announce, Observe(diagnosis=order.diagnosis))
    if order.save_case is not None:
        outcome = save_smallest(outcome, order.folder, order.save_case)
    publish(outcome, order.folder)
    return outcome


def verify(
    order: Order, announce: Callable[[Interpreter, tuple[Job, ...]], Listener], task: Task = _OBSERVE
) -> tuple[Outcome, tuple[Any, ...]]:
    """Check the order's models, without writing what was found. A task other than to observe may have answers.

    Raises:
        UserError: the config, the selection or the interpreter is not usable.
        GateError: the worker broke down.
    """
    started, clock = datetime.now(timezone.utc), time.monotonic()
    # The clock is read once: whatever depends on the day has the same one, even if midnight passes.
    today = started.date().isoformat()
    config = load_config(order.config)
    folder = config_folder(config.path)
    change, base_terms = find_change(config, base_of(order.base, order.environment), order.environment, order.python)
    # By the limit of the base, which the change cannot raise.
    require_short_waivers(config, started.date(), base_terms.waivers_max_days)
    planned = make_plan(config, order.selection, order.folder)
    jobs = planned if order.shard is None else jobs_of(order.shard, planned)
    python = find_interpreter(order.python, config.python, folder, order.environment)
    found = find_lock(config, order.base, order.environment, base_terms)
    # Before the models run: somebody may commit or check out meanwhile.
    head = head_revision(folder)
    # The last step before the worker: a mistake in the order must not remove an earlier run's results.
    prepare_folder(order.folder, jobs)
    terms = Terms(today=today, is_whole=not order.selection.is_narrow, lock=found.lock, unpushed=dict(order.unpushed))
    cache = open_cache(order, python.path, today)
    recalled = Recalled() if cache is None else recall(cache, jobs, order.folder, terms)
    rest = recalled.rest(jobs)
    observed = _observed(order, rest, task, python, announce)
    run = recalled.joined(observed.run, jobs)
    # Only now: every process of the project has ended, so nothing can change the artifacts any more.
    remove_unfinished(run, jobs)
    contracts = tuple(job.contract for job in jobs)
    results = Results(
        tool_version=__version__,
        config_path=str(order.config),
        python_option=order.python or "",
        config_sha256=config.sha256,
        started=started.isoformat(timespec="seconds").replace("+00:00", "Z"),
        duration_s=time.monotonic() - clock,
        contracts=contracts,
        run=sealed(run, jobs, order.folder),
        findings=(),
        # Replaced by the judge: results that were never judged must not look good.
        verdict="broken",
        head=head,
        checkout=find_checkout(config, [contract.name for contract in contracts]),
        planned=() if order.shard is None else tuple(job.contract for job in planned),
        judged_on=today,
        unselected_models=len(config.models) - len(planned),
        unselected_targets=unselected_targets(config, tuple(job.contract for job in planned)),
        narrowed=order.selection.is_narrow,
        lock=found.lock,
        change=found.said_with(change),
        # The stricter of both: a change cannot weaken what its base demands.
        fail_on="warning" if "warning" in {config.fail_on, base_terms.fail_on} else "violation",
        unpushed=dict(order.unpushed),
    )
    outcome = judged(results)
    notes: tuple[str, ...] = (found.note,) if found.note else ()
    if cache is not None:
        ran = Ran(jobs=rest, answers=observed.answers, recalled=recalled)
        notes += keep_verdicts(cache, outcome.results, ran, order, config)
    return replace(outcome, notes=notes), observed.answers


def _observed(
    order: Order,
    jobs: tuple[Job, ...],
    task: Task,
    python: Interpreter,
    announce: Callable[[Interpreter, tuple[Job, ...]], Listener],
) -> Observed:
    """What the worker observes; it does not start if there is nothing to observe."""
    if not jobs:
        return Observed(run=RunObservation(), answers=())
    if isinstance(task, Observe) and order.cache is not None:
        task = replace(task, dependencies=True)
    request = worker_request(order, jobs, task)
    prepare_reports()
    return observe(request, python.path, order.environment, announce(python, jobs))
