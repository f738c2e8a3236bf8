"""Build a Report from Results: the words, the order and the numbers are decided here, not in a template."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from export_gate.report.changes import change_view
from export_gate.report.commands import reproduce
from export_gate.report.evidence import (
    affine_line,
    dims_line,
    dropped_line,
    left_out_lines,
    model_evidence,
    run_evidence,
    unchanged_line,
)
from export_gate.report.findings import views
from export_gate.report.ladder import cells
from export_gate.report.places import near_the_config
from export_gate.report.record import STATES, ArtifactView, Cell, Counts, FindingView, ProblemView, Report, Row, State
from export_gate.report.results import Results
from export_gate.report.scope import find_scopes
from export_gate.rules import check_loosened
from export_gate.rules.base import Finding
from export_gate.rules.measure import Measured, measure_run
from export_gate.wall.contract import TargetName
from export_gate.wall.observation import ModelObservation
from export_gate.wall.targets import KIND_NAMES, KINDS
from export_gate.wall.words import count


def build_report(results: Results, measured: tuple[Measured, ...] | None = None) -> Report:
    """Everything that the terminal, the comment, the summary and the report file show of one run.

    Args:
        results: the judged run.
        measured: what the judge measured; None if the results were not judged here.
    """
    measured = measure_run(results.contracts, results.run) if measured is None else measured
    # What a change loosens is shown by itself, above the table, and not as a state of models and targets.
    about_models = replace(results, findings=_without(check_loosened.RULE.name, results.findings))
    rows = tuple(sorted(_rows(about_models, measured), key=lambda row: STATES.index(row.state)))
    shown = views(about_models, find_scopes(about_models, rows))
    counts = _counts(results, rows, shown)
    order = {row.model: place for place, row in enumerate(rows)}
    return Report(
        verdict=results.verdict,
        headline=headline(results, counts),
        counts=counts,
        targets=_columns(results),
        rows=rows,
        findings=tuple(replace(near_the_config(view, results.checkout), command=view.command) for view in shown),
        problems=near_the_config(tuple(_problems(results)), results.checkout),
        artifacts=tuple(sorted(_artifacts(results, rows), key=lambda found: order.get(found.model, 0))),
        evidence=run_evidence(rows),
        environment=_environment(results),
        tool_version=results.tool_version,
        config_path=results.config_path,
        config_sha256=results.config_sha256,
        head=results.head,
        started=results.started,
        duration_s=results.duration_s,
        shows_shares=any(0 < (cell.ratio or 0) <= 1 for row in rows for cell in row.cells),
        change=change_view(results.whole_change),
        measured=measured,
    )


def _columns(results: Results) -> tuple[TargetName, ...]:
    """The targets of all models: by kind, and those of one kind in the order in which models list them."""
    kinds = {planned.name: planned.kind for contract in results.contracts for planned in contract.targets}
    return tuple(sorted(kinds, key=lambda name: KIND_NAMES.index(kinds[name])))


def _without(rule: str, findings: Sequence[Finding]) -> tuple[Finding, ...]:
    return tuple(finding for finding in findings if finding.rule != rule)


def headline(results: Results, counts: Counts) -> str:
    """The verdict in one line: `export-gate: 2 of 3 models verified, 1 violation`."""
    parts = [f"{counts.verified} of {count(counts.models, 'model')} verified"]
    if results.verdict == "broken":
        parts = [f"no verdict, the check itself failed; {parts[0]}"]
    elif not counts.models:
        parts = ["no models to check"]
    if counts.unchecked and results.verdict != "broken":
        parts.append(f"{counts.unchecked} could not be checked")
    if counts.violations:
        causes = f" ({count(counts.causes, 'cause')})" if counts.causes != counts.violations else ""
        parts.append(f"{count(counts.violations, 'violation')}{causes}")
    if counts.warnings:
        parts.append(count(counts.warnings, "warning"))
    if counts.waived:
        parts.append(waived_words(results.findings))
    left = left_out(results)
    return f"export-gate: {', '.join(parts)}{f'; the command line left out {left}' if left else ''}"


def left_out(results: Results) -> str:
    """What the command line left out of the check: `2 models, 1 target, 47 control inputs`; empty for nothing."""
    controls = [seen.controls for seen in results.run.models if seen.controls is not None]
    numbers = {
        "model": results.unselected_models,
        "target": results.unselected_targets,
        "control input": sum(observed.unselected for observed in controls),
    }
    return ", ".join(count(number, noun) for noun, number in numbers.items() if number)


def waived_words(findings: Sequence[Finding]) -> str:
    """`1 waived until 2027-01-31`; with several waivers, the date of the first to end."""
    ends = sorted(finding.waiver.until for finding in findings if finding.waiver)
    first = "" if ends[0] == ends[-1] else ", the first"
    return f"{len(ends)} waived{first} until {ends[0]}"


def _counts(results: Results, rows: Sequence[Row], shown: Sequence[FindingView]) -> Counts:
    severities = [finding.severity for finding in results.findings]
    waived = sum(finding.waiver is not None for finding in results.findings)
    return Counts(
        models=len(rows),
        verified=sum(row.state in ("ok", "warned") for row in rows),
        unchecked=sum(row.state == "skipped" for row in rows),
        violations=severities.count("violation"),
        warnings=severities.count("warning"),
        causes=severities.count("violation") - sum(len(view.marks) - 1 for view in shown if view.mark == "violation"),
        # As many as the reports list: one of a model stands for all of its notes that ask for nothing.
        notes=sum(view.mark == "note" for view in shown),
        waived=waived,
        control_inputs=sum(row.compared for row in rows),
    )


def _rows(results: Results, measured: Sequence[Measured]) -> tuple[Row, ...]:
    # A model that was never run has a row all the same, so that it cannot be overlooked.
    observed = {model.contract.name: model for model in measured}
    unseen = {c.name: Measured(contract=c, observation=ModelObservation(model=c.name)) for c in results.contracts}
    return tuple(
        _row(
            observed.get(name, bare),
            tuple(finding for finding in results.findings if finding.model == name),
            reason=_unchecked(observed.get(name)),
        )
        for name, bare in unseen.items()
    )


def _unchecked(measured: Measured | None) -> str:
    if measured is None:
        return "was not run"
    return "could not be checked" if measured.observation.problem is not None else ""


def _row(measured: Measured, findings: Sequence[Finding], reason: str) -> Row:
    contract, observation = measured.contract, measured.observation
    filled = cells(measured, findings)
    state = _row_state(filled, findings, reason)
    controls, kinds = observation.controls, {planned.kind for planned in contract.targets}
    compared = max((sum(ladder.compared for ladder in cell.ladders) for cell in filled), default=0)
    ignored = [output.name for output in contract.outputs if output.leaf == "ignore"]
    return Row(
        model=contract.name,
        state=state,
        reason=reason,
        cells=filled,
        dims=dims_line(contract),
        compared=compared,
        evidence=model_evidence(controls, kinds, compared, verified=state in ("ok", "warned"), ignored=ignored),
        affine=affine_line([ladder for cell in filled for ladder in cell.ladders], controls),
        left_out=left_out_lines(controls),
        dropped=dropped_line(controls),
        unchanged=unchanged_line(observation.reused),
        parameters=observation.parameters,
        weights_bytes=observation.weights_bytes,
        peak_memory_bytes=observation.peak_memory_bytes,
        duration_s=observation.duration_s,
    )


def _row_state(filled: Sequence[Cell], findings: Sequence[Finding], reason: str) -> State:
    """A model is verified if every target is and there is no other violation."""
    states = {cell.state for cell in filled} | ({"skipped"} if reason or not filled else set())
    severities = {finding.severity for finding in findings}
    # The gravest first: one cell decides the state of the row.
    if "failed" in states or "violation" in severities:
        return "failed"
    if "skipped" in states:
        return "skipped"
    if "waived" in states or any(finding.waiver for finding in findings):
        return "waived"
    return "warned" if "warned" in states or "warning" in severities else "ok"


def _problems(results: Results) -> Iterator[ProblemView]:
    observed = {model.model: model for model in results.run.models}
    if results.run.environment is None and results.contracts:
        yield ProblemView(
            model=None,
            message="The worker did not start in the project's interpreter, so no model was checked.",
            hint=(
                "Check that the interpreter starts and has torch: `--python`, EXPORT_GATE_PYTHON or `python:` in the "
                "config choose it. What it printed is in the log of this run."
            ),
            command=reproduce(results.caller),
        )
        return
    for contract in results.contracts:
        model = observed.get(contract.name)
        command = reproduce(results.caller, contract.name)
        if model is None:
            yield ProblemView(
                model=contract.name,
                message=f"{contract.name}: the run ended before this model was checked.",
                hint="Run the model by itself.",
                command=command,
            )
        elif model.problem is not None:
            yield ProblemView(
                model=contract.name,
                message=model.problem.message,
                hint=results.caller.located(model.problem.hint),
                command=command,
                source=model.failure.source if model.failure else None,
                details=model.failure.trace if model.failure else "",
            )


def _artifacts(results: Results, rows: Sequence[Row]) -> Iterator[ArtifactView]:
    states = {(row.model, ladder.label): ladder.state for row in rows for cell in row.cells for ladder in cell.ladders}
    for model in results.run.models:
        for target in model.targets:
            if target.artifact is None:
                continue
            label = f"{target.target} at {target.export}" if target.export else target.target
            yield ArtifactView(
                model=model.model,
                label=label,
                path=target.artifact.path,
                sha256=target.artifact.sha256,
                size_bytes=target.artifact.size_bytes,
                verified=states.get((model.model, label)) in ("ok", "warned"),
            )


def _environment(results: Results) -> str:
    seen = results.run.environment
    if seen is None:
        return ""
    versions = [f"{name} {seen.versions[name]}" for name in sorted(seen.versions, key=_prominence)]
    machine = (seen.cpu, count(seen.threads, "thread"), _system(seen.platform))
    return "; ".join([", ".join([f"Python {seen.python}", *versions]), *filter(None, machine)])


def _system(platform: str) -> str:
    """`Linux x86_64` of `Linux-6.1.0-18-cloud-amd64-x86_64-with-glibc2.36`; the full report has the whole name."""
    name, *rest = platform.split("-")
    known = [part for part in rest if part in ("x86_64", "aarch64", "arm64", "AMD64", "i686", "ppc64le", "s390x")]
    return " ".join([name, *known[:1]])


def _prominence(name: str) -> tuple[int, str]:
    known = ("torch", "numpy", *(package for kind in KINDS for package in kind.packages))
    return (known.index(name) if name in known else len(known), name)
