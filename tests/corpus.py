"""A folder of reproduced bug reports, each a project with a known right verdict, judged in one run of the worker.

`python tests/corpus.py FOLDER [NAME ...]` prints a table: the verdict beside the recorded one, what the gate found and
the control input that caught it. Exit status 1 where they disagree.
"""

from __future__ import annotations

import csv
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from export_gate.config import load_config
from export_gate.rules.base import Finding
from export_gate.rules.judge import Verdict, judge
from export_gate.run.observe import observe
from export_gate.wall.contract import PROTOCOL, Job, Request, TargetName
from export_gate.wall.observation import RunObservation

CORPUS = Path(os.environ.get("EXPORT_GATE_CORPUS", Path(__file__).parents[2] / "shared" / "cases"))
"""Handed around apart from the project; the test that needs it is skipped with a notice where it is missing."""

TARGETS: tuple[TargetName, ...] = ("exported-program", "pt2", "onnx")

RULES = {
    "fail:value": ("value-mismatch",),
    "fail:nan": ("nonfinite-mismatch",),
    "fail:dtype": ("dtype-mismatch",),
    "fail:structure-nontensor": ("structure-mismatch",),
    "fail:runtime-error": ("run-failed", "worker-died", "range-narrowed"),
    "fail:contract": ("contract-broken",),
    "load-error": ("load-failed",),
}
"""What was recorded of a target -> the rules that may say so; an `export-error` depends on the other targets."""

CAUSES = {
    "fail:value": ("train-mode", "nondeterministic-model", "state-carried", "contract-broken"),
}
"""Rules that say why, in place of the target's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One row of expected.tsv."""

    name: str
    fails: bool
    targets: dict[TargetName, str]
    """What was measured by hand: `pass`, `fail:value`, `export-error`, ..."""
    summary: str

    def rules(self, target: TargetName) -> tuple[str, ...]:
        """The rules of which one has to find what was recorded of a target; none where it passed."""
        recorded = self.targets[target]
        if recorded == "export-error":
            is_shared = all(outcome == recorded for outcome in self.targets.values())
            return ("export-failed",) if is_shared else ("conversion-failed",)
        return () if recorded == "pass" else RULES[recorded]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One case with what the gate says."""

    case: Case
    verdict: Verdict
    violations: tuple[Finding, ...]
    inputs: int
    duration_s: float

    def disagreements(self) -> Iterator[str]:
        """How the gate's verdict, rules and targets differ from what was recorded."""
        expected = "violations" if self.case.fails else "verified"
        if self.verdict != expected:
            yield f"{self.case.name}: expected {expected}, got {self.verdict}"
        for target in TARGETS:
            own = {finding.rule for finding in self.violations if finding.target == target}
            shared = {finding.rule for finding in self.violations if finding.target is None}
            recorded, rules = self.case.targets[target], self.case.rules(target)
            place = f"{self.case.name}, {target} (recorded: {recorded})"
            if not rules and own:
                yield f"{place}: expected no violation of its own, got {_listing(own)}"
            elif rules and not (own | shared) & {*rules, *CAUSES.get(recorded, ())}:
                yield f"{place}: expected {_listing(rules)}, got {_listing(own | shared)}"
            elif rules and not own and not shared & {"export-failed", "contract-broken"}:
                yield f"{place}: expected a violation of its own, got {_listing(shared)} of the model"


def _listing(rules: Sequence[str] | set[str]) -> str:
    return " or ".join(sorted(rules)) or "nothing"


def read_cases(folder: Path) -> tuple[Case, ...]:
    """The rows of `expected.tsv`."""
    with (folder / "expected.tsv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    return tuple(
        Case(
            name=row["case"],
            fails=row["verdict"] == "must-fail",
            targets={name: row[name] for name in TARGETS},
            summary=row["summary"],
        )
        for row in rows
    )


def judge_cases(folder: Path, cases: Sequence[Case], parallel: int = 2) -> tuple[Judged, ...]:
    """Observe all cases in one run of the worker under this interpreter, and judge each."""
    with tempfile.TemporaryDirectory() as scratch:
        jobs = tuple(_job(folder / case.name, case.name, Path(scratch)) for case in cases)
        request = Request(protocol=PROTOCOL, jobs=jobs, parallel=parallel, log_folder=f"{scratch}/.export-gate/logs")
        run = observe(request, Path(sys.executable), os.environ).run
    return tuple(
        _judged(case, job, replace(run, models=tuple(model for model in run.models if model.model == case.name)))
        for case, job in zip(cases, jobs, strict=True)
    )


def _judged(case: Case, job: Job, run: RunObservation) -> Judged:
    judgement = judge((job.contract,), run)
    seen = next(iter(run.models), None)
    return Judged(
        case=case,
        verdict=judgement.verdict,
        violations=tuple(finding for finding in judgement.findings if finding.severity == "violation"),
        inputs=len(seen.controls.inputs) if seen and seen.controls else 0,
        duration_s=seen.duration_s if seen else 0.0,
    )


def _job(project: Path, name: str, scratch: Path) -> Job:
    config = load_config(project / "export-gate.yml")
    return Job(
        contract=replace(config.models[0], name=name),
        base=str(project),
        pythonpath=config.pythonpath,
        artifacts=str(scratch / ".export-gate" / "artifacts" / name),
    )


def table(judged: Sequence[Judged]) -> Iterator[str]:
    """One line for each case, and below it what disagrees."""
    width = max(len(row.case.name) for row in judged)
    yield f"  {'case':{width}}  recorded   verdict     inputs  seconds  found, and by which control input"
    for row in judged:
        wrong = tuple(row.disagreements())
        recorded = "must-fail" if row.case.fails else "must-pass"
        yield (
            f"{'x' if wrong else ' '} {row.case.name:{width}}  {recorded:9}  {row.verdict:10}  {row.inputs:6}  "
            f"{row.duration_s:7.1f}  {_found(row)}"
        ).rstrip()
        yield from (f"    {line}" for line in wrong)
        if wrong:
            yield f"    about: {row.case.summary}"
            yield from (f"    found: {finding.message}" for finding in row.violations)


def _found(row: Judged) -> str:
    """`value-mismatch (onnx) at low-1@B=8`, the rules with the targets of each."""
    owners: dict[str, list[str]] = {}
    for finding in row.violations:
        owners.setdefault(finding.rule, []).append(finding.target or "model")
    rules = ", ".join(f"{rule} ({', '.join(dict.fromkeys(targets))})" for rule, targets in owners.items())
    caught = next((finding.case for finding in row.violations if finding.case), None)
    return f"{rules} at {caught}" if caught else rules


def main(folder: Path, names: Sequence[str]) -> int:
    """Print the table; exit status 1 where a verdict, a rule or a target disagrees with the record."""
    if not (folder / "expected.tsv").is_file():
        print(f"{folder} has no expected.tsv: give the corpus's folder, or set EXPORT_GATE_CORPUS")
        return 2
    cases = [case for case in read_cases(folder) if not names or any(name in case.name for name in names)]
    if not cases:
        print(f"no case is called {' or '.join(names)}")
        return 2
    started = time.perf_counter()
    judged = judge_cases(folder, cases)
    print("\n".join(table(judged)))
    right = sum(not any(row.disagreements()) for row in judged)
    print(f"{right} of {len(judged)} as recorded, in {time.perf_counter() - started:.0f} s")
    return 0 if right == len(judged) else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else CORPUS, sys.argv[2:]))
