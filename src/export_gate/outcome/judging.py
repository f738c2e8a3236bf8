"""Turn results into an outcome: judge them, judge them again under other contracts, or merge several machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from export_gate.config import Config
from export_gate.loosening.record import FailOn
from export_gate.outcome.merge import merge
from export_gate.report.build import build_report
from export_gate.report.record import Report
from export_gate.report.results import Results, read_results
from export_gate.rules.base import Finding
from export_gate.rules.judge import Judgement, Verdict, judge
from export_gate.rules.promises import held_again, unobserved_dims
from export_gate.run.plan import Selection, select
from export_gate.wall.contract import ModelContract, Tolerance
from export_gate.wall.errors import GateError, UserError
from export_gate.wall.observation import ModelObservation

Change = Callable[[ModelContract], ModelContract]
"""Changes the contract, for the same observations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a run."""

    results: Results
    judgement: Judgement
    report: Report
    notes: tuple[str, ...] = ()
    """Further notes for the caller."""


def judged(results: Results) -> Outcome:
    """Judge these contracts and observations; existing findings are replaced."""
    judgement = judge(results.contracts, results.run, results.terms)
    return _outcome(results, judgement if results.fail_on == "violation" else _without_warnings(judgement))


def rejudge(path: Path, change: Change, today: str | None = None, fail_on: FailOn | None = None) -> Outcome:
    """Judge recorded observations again under changed contracts.

    Args:
        path: a results.json.
        change: applied to each contract.
        today: ISO date for waivers; None means the recorded date, which gives the recorded verdict.
        fail_on: the lowest severity that fails the check; None means the recorded one.

    Raises:
        UserError: the file is not results, contradicts itself, or the outputs use a dim that was not observed.
    """
    recorded = read_results(path)
    with _of_files(path):
        contracts = tuple(change(contract) for contract in recorded.contracts)
        run = replace(recorded.run, models=tuple(_promises_held(recorded, contracts, path)))
        # The recorded day, not today's, so that rendering a report again does not change its verdict.
        day, severity = today or recorded.judged_on, fail_on or recorded.fail_on
        return judged(replace(recorded, contracts=contracts, run=run, judged_on=day, fail_on=severity))


def _promises_held(recorded: Results, contracts: Sequence[ModelContract], path: Path) -> Iterator[ModelObservation]:
    """The observations, with the promises that eager breaks under changed `outputs`."""
    before = {contract.name: contract.outputs for contract in recorded.contracts}
    changed = {contract.name: contract for contract in contracts if contract.outputs != before[contract.name]}
    for seen in recorded.run.models:
        contract = changed.get(seen.model)
        for dim in unobserved_dims(contract, seen) if contract else ():
            raise UserError(
                f"{path}: `models.{seen.model}.outputs` of the config has the dim {dim!r}, expected dims whose sizes "
                "were recorded at every control input",
                "Run `export-gate run` again.",
            )
        yield held_again(contract, seen) if contract else seen


def join(paths: Sequence[Path]) -> Outcome:
    """Judge the results of several machines as one run.

    Raises:
        UserError: a file is not results or contradicts itself, or they are not of one run.
    """
    parts = [(path, read_results(path)) for path in paths]
    with _of_files(*paths):
        return judged(merge(parts))


@contextmanager
def _of_files(*paths: Path) -> Iterator[None]:
    """Take what fails inside for a fault of the files: anybody may have written them, and their numbers trip any rule.

    Raises:
        UserError: something failed.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        names = ", ".join(map(str, paths))
        raise UserError(
            f"{names}: the observations contradict each other ({type(error).__name__}: {error})",
            "Run `export-gate run` again; if its own results are refused, please report that.",
        ) from error


def fail_on_warnings(outcome: Outcome) -> Outcome:
    """The outcome with every warning as a violation, so that verdict and report agree."""
    return _outcome(outcome.results, _without_warnings(outcome.judgement))


def _without_warnings(judgement: Judgement) -> Judgement:
    findings = tuple(
        replace(finding, severity="violation") if finding.severity == "warning" else finding
        for finding in judgement.findings
    )
    has_violation = any(finding.severity == "violation" for finding in findings)
    # A problem, or a run that broke down, stays what it is.
    is_verified = judgement.verdict == "verified"
    verdict: Verdict = "violations" if is_verified and has_violation else judgement.verdict
    return replace(judgement, findings=findings, verdict=verdict)


def with_findings(outcome: Outcome, findings: tuple[Finding, ...]) -> Outcome:
    """The outcome with further facts in its findings; its notes stay."""
    changed = _outcome(outcome.results, replace(outcome.judgement, findings=findings))
    return replace(changed, notes=outcome.notes)


def _outcome(results: Results, judgement: Judgement) -> Outcome:
    """Build the outcome; a green verdict with an unchecked model in the report is a bug, never a pass."""
    findings = tuple(replace(each, hint=results.caller.located(each.hint)) for each in judgement.findings)
    decided = replace(results, findings=findings, verdict=judgement.verdict)
    report = build_report(decided, judgement.measured)
    # Two ways to the same fact: the judge counts findings, the report counts models.
    if judgement.verdict == "verified" and report.counts.unchecked:
        raise GateError(f"verdict and report disagree: {report.headline}; this is a bug in export-gate")
    return Outcome(results=decided, judgement=judgement, report=report)


def with_tolerance(atol: float | None, rtol: float | None, targets: tuple[str, ...]) -> Change:
    """A change of contract: new tolerances for the named targets, or for all."""

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


def with_config(config: Config) -> Change:
    """A change of contract: take tolerances, guard policies, outputs and waivers from the current config.

    Raises:
        UserError: the config does not have a model with that name.
    """

    def change(contract: ModelContract) -> ModelContract:
        (now,) = select(config, Selection(models=(contract.name,)))
        known = {target.name: target for target in now.targets}
        targets = tuple(
            replace(target, tolerance=known[target.name].tolerance, guards=known[target.name].guards)
            if target.name in known
            else target
            for target in contract.targets
        )
        return replace(contract, tolerance=now.tolerance, outputs=now.outputs, targets=targets, waivers=now.waivers)

    return change


def _over(tolerance: Tolerance, atol: float | None, rtol: float | None) -> Tolerance:
    return replace(
        tolerance,
        atol=tolerance.atol if atol is None else atol,
        rtol=tolerance.rtol if rtol is None else rtol,
    )
