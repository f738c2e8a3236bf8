"""The product on one screen: config -> plan -> observe -> judge -> report.

`export-gate.yml` becomes contracts (`config/`), the selected ones become jobs (`plan`), the worker turns jobs into
observations under the project's own interpreter (`observe`, and everything in `worker/` beyond the wall), the rules
turn observations into findings and a verdict (`rules/`), and the report turns both into text (`report/`). Only `cli`
prints or exits.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from export_gate import __version__
from export_gate.checkout import find_checkout, head_revision
from export_gate.config import Config, load_config
from export_gate.contract import PROTOCOL, Job, ModelContract, Request, Tolerance
from export_gate.errors import GateError, UserError
from export_gate.handed_in import refuse_own_artifacts
from export_gate.interpreter import Interpreter, find_interpreter
from export_gate.links import refuse_links
from export_gate.lock.find import find_lock
from export_gate.observe import Listener, observe
from export_gate.plan import Selection, make_plan, select
from export_gate.report.artifacts import write_manifests
from export_gate.report.build import build_report
from export_gate.report.html import render_html
from export_gate.report.merge import merge
from export_gate.report.record import Report
from export_gate.report.render import render
from export_gate.report.results import Results, read_results, write_results
from export_gate.rules.judge import Judgement, Verdict, judge
from export_gate.seal import remove_unfinished, sealed
from export_gate.shards import Shard, jobs_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a caller wants checked."""

    config: Path
    selection: Selection = field(default_factory=Selection)
    python: str | None = None
    """The interpreter that the caller names; None leaves it to the search order."""
    parallel: int = 1
    folder: Path = Path(".export-gate")
    """Receives results.json, report.md, report.html and artifacts."""
    environment: Mapping[str, str] = field(default_factory=dict)
    shard: Shard | None = None
    """The part of the selection that this machine checks; None is all of it."""
    lock_base: str | None = None
    """The commit whose interface lock holds; None is the working tree's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run leaves behind."""

    results: Results
    judgement: Judgement
    report: Report
    notes: tuple[str, ...] = ()
    """What the caller should be told besides."""


def run(order: Order, announce: Callable[[Interpreter, tuple[Job, ...]], Listener]) -> Outcome:
    """Check the order's models and write what was found.

    Args:
        order: what to check.
        announce: told the interpreter and the jobs before the worker starts; returns who listens to its events.

    Raises:
        UserError: the config, the selection or the interpreter is not usable.
        GateError: the worker broke down or the results cannot be written.
    """
    outcome, _ = verify(order, announce)
    publish(outcome, order.folder)
    return outcome


def verify(
    order: Order, announce: Callable[[Interpreter, tuple[Job, ...]], Listener], **question: Any
) -> tuple[Outcome, tuple[Any, ...]]:
    """Check the order's models; what was found is not written yet. A question goes with the request, for its answers.

    Raises:
        UserError: the config, the selection or the interpreter is not usable.
        GateError: the worker broke down.
    """
    started, clock = datetime.now(timezone.utc), time.monotonic()
    config = load_config(order.config)
    planned = make_plan(config, order.selection, order.folder)
    jobs = planned if order.shard is None else jobs_of(order.shard, planned)
    python = find_interpreter(order.python, config.python, config.path.resolve().parent, order.environment)
    found = find_lock(config, order.lock_base, order.environment)
    prepare_folder(order.folder, jobs)
    request = replace(_request(order, jobs), **question)
    observed = observe(request, python.path, order.environment, announce(python, jobs))
    remove_unfinished(observed.run, jobs)
    contracts = tuple(job.contract for job in jobs)
    results = Results(
        tool_version=__version__,
        config_path=str(order.config),
        config_sha256=config.sha256,
        started=started.isoformat(timespec="seconds").replace("+00:00", "Z"),
        duration_s=time.monotonic() - clock,
        contracts=contracts,
        run=sealed(observed.run, jobs, order.folder),
        findings=(),
        verdict="broken",
        head=head_revision(config.path.resolve().parent),
        checkout=find_checkout(config, [contract.name for contract in contracts]),
        planned=() if order.shard is None else tuple(job.contract for job in planned),
        judged_on=started.date().isoformat(),
        narrowed=order.selection.is_narrow,
        lock=found.lock,
    )
    return replace(judged(results), notes=(found.note,) if found.note else ()), observed.answers


def rejudge(path: Path, change: Callable[[ModelContract], ModelContract], today: str | None = None) -> Outcome:
    """Judge recorded observations again under changed contracts.

    Args:
        path: a results.json.
        change: applied to each contract.
        today: ISO date that waivers are held against; None is the recorded one, which gives the recorded verdict.

    Raises:
        UserError: the file holds no results.
    """
    recorded = read_results(path)
    recorded = replace(recorded, judged_on=today or recorded.judged_on)
    return judged(replace(recorded, contracts=tuple(change(contract) for contract in recorded.contracts)))


def join(paths: Sequence[Path]) -> Outcome:
    """Judge the results of several machines as one run.

    Raises:
        UserError: a file holds no results, or they are not of one run.
    """
    return judged(merge([(path, read_results(path)) for path in paths]))


def judged(results: Results) -> Outcome:
    """What the rules say of these contracts and observations, whatever findings came with them."""
    judgement = judge(results.contracts, results.run, results.terms)
    return _outcome(results, judgement)


def fail_on_warnings(outcome: Outcome) -> Outcome:
    """The same with every warning a violation, so that the verdict and what is shown agree."""
    findings = tuple(
        replace(finding, severity="violation") if finding.severity == "warning" else finding
        for finding in outcome.judgement.findings
    )
    has_violation = any(finding.severity == "violation" for finding in findings)
    is_verified = outcome.judgement.verdict == "verified"
    verdict: Verdict = "violations" if is_verified and has_violation else outcome.judgement.verdict
    return _outcome(outcome.results, replace(outcome.judgement, findings=findings, verdict=verdict))


def _outcome(results: Results, judgement: Judgement) -> Outcome:
    """The outcome; a green verdict whose own report shows an unchecked model is a fault of ours, never a pass."""
    decided = replace(results, findings=judgement.findings, verdict=judgement.verdict)
    report = build_report(decided)
    if judgement.verdict == "verified" and report.counts.unchecked:
        raise GateError(f"verdict and report disagree: {report.headline}; this is a bug in export-gate")
    return Outcome(results=decided, judgement=judgement, report=report)


def with_tolerance(atol: float | None, rtol: float | None, targets: tuple[str, ...]) -> Callable[[ModelContract], Any]:
    """A change of contract: other tolerances for the named targets, or for all."""

    def change(contract: ModelContract) -> ModelContract:
        return replace(
            contract,
            targets=tuple(
                replace(target, tolerance=_over(target.tolerance, atol, rtol))
                if not targets or target.name in targets
                else target
                for target in contract.targets
            ),
        )

    return change


def with_config(config: Config) -> Callable[[ModelContract], ModelContract]:
    """A change of contract: tolerances, output promises and waivers as the config says them now.

    Raises:
        UserError: the config has no model of that name.
    """

    def change(contract: ModelContract) -> ModelContract:
        (now,) = select(config, Selection(models=(contract.name,)))
        known = {target.name: target for target in now.targets}
        targets = tuple(
            replace(target, tolerance=known[target.name].tolerance) if target.name in known else target
            for target in contract.targets
        )
        return replace(contract, tolerance=now.tolerance, outputs=now.outputs, targets=targets, waivers=now.waivers)

    return change


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
        request = replace(_request(order, jobs), log_folder=logs, **question)
        observed = observe(request, found.path, order.environment)
    seen = observed.run.models[0]
    if seen.problem is not None:
        raise UserError(seen.problem.message, seen.problem.hint)
    if seen.failure is not None:
        raise UserError(f"{seen.model}: {seen.failure.type}: {seen.failure.message}", seen.failure.trace)
    return observed


def publish(outcome: Outcome, folder: Path) -> None:
    """Write results.json, report.md, report.html and the artifacts' manifests.

    Raises:
        GateError: one of them cannot be written.
    """
    write_results(outcome.results, folder / "results.json")
    try:
        (folder / "report.md").write_text(render(outcome.report, "markdown"), encoding="utf-8")
        (folder / "report.html").write_text(render_html(outcome.results, outcome.report), encoding="utf-8")
        write_manifests(outcome.results, folder)
    except OSError as error:
        raise GateError(f"{folder}: cannot write the report: {error.strerror or error}") from error


def prepare_folder(folder: Path, jobs: tuple[Job, ...]) -> None:
    """Make the report folder, invisible to git, and remove what an earlier run left of the same models.

    Raises:
        UserError: it, or something of it, is a symbolic link, or an artifact that was handed in would be removed.
        GateError: the folder cannot be written.
    """
    refuse_links(folder, jobs)
    refuse_own_artifacts(folder, jobs)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".gitignore").write_text("*\n", encoding="utf-8")
        for stale in ("results.json", "report.md", "report.html"):
            (folder / stale).unlink(missing_ok=True)
        for job in jobs:
            shutil.rmtree(job.artifacts, ignore_errors=True)
            (folder / "logs" / f"{job.contract.name}.log").unlink(missing_ok=True)
    except OSError as error:
        raise GateError(f"{folder}: cannot write the report folder: {error.strerror or error}") from error


def default_parallel() -> int:
    """One model per core, as each uses one thread."""
    return max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def _request(order: Order, jobs: tuple[Job, ...]) -> Request:
    return Request(
        protocol=PROTOCOL, jobs=jobs, parallel=order.parallel, log_folder=str(order.folder.resolve() / "logs")
    )


def _over(tolerance: Tolerance, atol: float | None, rtol: float | None) -> Tolerance:
    return replace(
        tolerance,
        atol=tolerance.atol if atol is None else atol,
        rtol=tolerance.rtol if rtol is None else rtol,
    )


__all__ = ["GateError", "Order", "Outcome", "ask", "rejudge", "run", "with_config", "with_tolerance"]
