"""Judge a folder of cases (small projects with a known right verdict) in one run of the worker.

`python tests/judge_corpus.py [--folder FOLDER] [NAME ...]` prints a table: the recorded verdict, the gate's verdict,
what the gate found and the control input that caught it. The exit status is 1 if they disagree.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from export_gate.config import load_config
from export_gate.rules.base import Finding
from export_gate.rules.judge import Verdict, judge
from export_gate.run.observe import observe
from export_gate.wall.contract import Job, TargetName
from export_gate.wall.errors import UserError
from export_gate.wall.observation import RunObservation
from export_gate.wall.request import Request

CORPUS = Path(__file__).parent / "corpus"

TARGETS: tuple[TargetName, ...] = ("exported-program", "pt2", "onnx")

RULES = {
    "fail:value": ("value-mismatch",),
    "fail:nan": ("nonfinite-mismatch",),
    "fail:dtype": ("dtype-mismatch",),
    "fail:shape": ("shape-mismatch",),
    "fail:structure-nontensor": ("structure-mismatch",),
    "fail:runtime-error": ("run-failed", "worker-died", "range-narrowed"),
    "fail:contract": ("contract-broken",),
    "load-error": ("load-failed",),
}
"""What was recorded of a target -> the rules that may report it; an `export-error` depends on the other targets."""

UNDECIDED = ("", "ill-conditioned")
"""Recorded where nothing was measured, or where what was measured says nothing about the right verdict."""

EXPLANATIONS = {
    "fail:value": ("train-mode", "nondeterministic-model", "state-carried", "contract-broken", "nothing-compared"),
    "export-error": ("contract-broken",),  # eager refuses as well, which comes first
}
"""Rules that report why a target differs, instead of the target's own rule."""

ROOTS = {"export-failed", "contract-broken", "nondeterministic-model", "train-mode"}
"""Rules of a model that explain what differs on its targets, so that nothing else is reported there."""

Recorded = Literal["must-fail", "must-pass", "either"]

VERDICTS: dict[Recorded, tuple[str, ...]] = {
    "must-fail": ("violations",),
    "must-pass": ("verified",),
    "either": ("violations", "verified"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One row of expected.tsv."""

    name: str
    recorded: Recorded
    targets: dict[TargetName, str]
    """What was measured by hand: `pass`, `fail:value`, `export-error`, ...; empty where nothing was."""
    causes: tuple[str, ...] = ()
    """The right causes, each of which will do; none in a folder that does not record them."""
    summary: str

    def rules(self, target: TargetName) -> tuple[str, ...]:
        """The rules of which one has to find what was recorded of a target; none if the target passed."""
        recorded = self.targets[target]
        if recorded == "export-error":
            is_shared = all(outcome == recorded for outcome in self.targets.values())
            return ("export-failed",) if is_shared else ("conversion-failed",)
        return () if recorded == "pass" else RULES[recorded]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One case with the gate's judgement."""

    case: Case
    verdict: Verdict | Literal["refused"]
    """`refused`: the case's config is not usable."""
    violations: tuple[Finding, ...] = ()
    refusal: str = ""
    inputs: int = 0
    duration_s: float = 0.0

    def disagreements(self) -> Iterator[str]:
        """How the gate's verdict, rules and targets differ from what was recorded."""
        expected = VERDICTS[self.case.recorded]
        if self.verdict not in expected:
            yield f"{self.case.name}: expected {_listing(expected)}, got {self.verdict}"
        if self.verdict == "violations" and self.case.causes:
            yield from self._wrong_causes()
        if self.verdict != "refused":
            for target in TARGETS:
                yield from self._disagreements_on(target)

    def _disagreements_on(self, target: TargetName) -> Iterator[str]:
        recorded = self.case.targets[target]
        if recorded in UNDECIDED:
            return
        own = {finding.rule for finding in self.violations if finding.target == target}
        shared = {finding.rule for finding in self.violations if finding.target is None}
        rules = self.case.rules(target)
        place = f"{self.case.name}, {target} (recorded: {recorded})"
        if not rules and own:
            yield f"{place}: expected no violation of its own, got {_listing(own)}"
        elif rules and not (own | shared) & {*rules, *EXPLANATIONS.get(recorded, ())}:
            yield f"{place}: expected {_listing(rules)}, got {_listing(own | shared)}"
        elif rules and not own and not shared & ROOTS:
            yield f"{place}: expected a violation of its own, got {_listing(shared)} of the model"

    def _wrong_causes(self) -> Iterator[str]:
        """A right cause must be named, and no wrong one; an unknown one beside it is no mistake."""
        named = set(self.causes)
        if not named & set(self.case.causes):
            yield f"{self.case.name}: expected cause {_listing(self.case.causes)}, got {_listing(named)}"
        wrong = named - set(self.case.causes) - {"unknown"}
        if wrong and named & set(self.case.causes):
            yield f"{self.case.name}: expected no cause but {_listing(self.case.causes)}, got {_listing(wrong)} as well"

    @property
    def causes(self) -> tuple[str, ...]:
        """The causes that the findings name, each once."""
        return tuple(dict.fromkeys(finding.cause for finding in self.violations))


def _listing(rules: Sequence[str] | set[str]) -> str:
    return " or ".join(sorted(rules)) or "nothing"


def read_cases(folder: Path) -> tuple[Case, ...]:
    """The rows of `expected.tsv`."""
    with (folder / "expected.tsv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    return tuple(
        Case(
            name=row["case"],
            recorded=_recorded(row["verdict"]),
            targets={name: row[name] for name in TARGETS},
            causes=tuple(cause for cause in row.get("cause", "").split(",") if cause),
            summary=row["summary"],
        )
        for row in rows
    )


def _recorded(verdict: str) -> Recorded:
    match verdict:
        case "must-fail" | "must-pass" | "either":
            return verdict
        case _:
            raise ValueError(f"expected must-fail, must-pass or either, got {verdict!r}")


def judge_cases(folder: Path, cases: Sequence[Case], parallel: int = 2) -> tuple[Judged, ...]:
    """Observe all cases in one run of the worker under this interpreter, and judge each."""
    with tempfile.TemporaryDirectory() as scratch:
        jobs = {case.name: _job(folder / case.name, Path(scratch)) for case in cases}
        usable = tuple(job for job in jobs.values() if isinstance(job, Job))
        request = Request(jobs=usable, parallel=parallel, log_folder=f"{scratch}/.export-gate/logs")
        run = observe(request, Path(sys.executable), os.environ).run
    return tuple(_judged(case, jobs[case.name], run) for case in cases)


def _judged(case: Case, job: Job | UserError, run: RunObservation) -> Judged:
    if isinstance(job, UserError):
        return Judged(case=case, verdict="refused", refusal=str(job))
    own = replace(run, models=tuple(model for model in run.models if model.model == case.name))
    judgement = judge((job.contract,), own)
    seen = next(iter(own.models), None)
    return Judged(
        case=case,
        verdict=judgement.verdict,
        violations=tuple(finding for finding in judgement.findings if finding.severity == "violation"),
        inputs=len(seen.controls.inputs) if seen and seen.controls else 0,
        duration_s=seen.duration_s if seen else 0.0,
    )


def _job(project: Path, scratch: Path) -> Job | UserError:
    try:
        config = load_config(project / "export-gate.yml")
    except UserError as error:
        return error
    return Job(
        contract=replace(config.models[0], name=project.name),
        base=str(project),
        pythonpath=config.pythonpath,
        artifacts=str(scratch / ".export-gate" / "artifacts" / project.name),
    )


def table(judged: Sequence[Judged]) -> Iterator[str]:
    """One line for each case, and below it what disagrees."""
    width = max(len(row.case.name) for row in judged)
    yield f"  {'case':{width}}  recorded   verdict     inputs  seconds  found, and by which control input"
    for row in judged:
        wrong = tuple(row.disagreements())
        yield (
            f"{'x' if wrong else ' '} {row.case.name:{width}}  {row.case.recorded:9}  {row.verdict:10}  "
            f"{row.inputs:6}  {row.duration_s:7.1f}  {_found(row)}"
        ).rstrip()
        if row.causes:
            yield f"    cause: {', '.join(row.causes)} (recorded: {_listing(row.case.causes)})"
            yield from (
                f"    {finding.owner}, {finding.cause}: {'; '.join(finding.evidence)}" for finding in row.violations
            )
        yield from (f"    {line}" for line in wrong)
        if wrong:
            yield f"    about: {row.case.summary}"
            yield from (f"    found: {finding.message}" for finding in row.violations)
            yield from (f"    refused: {line}" for line in row.refusal.splitlines())


def _found(row: Judged) -> str:
    """`value-mismatch (onnx) at low-1@B=8`, the rules with the targets of each."""
    owners: dict[str, list[str]] = {}
    for finding in row.violations:
        owners.setdefault(finding.rule, []).append(finding.target or "model")
    rules = ", ".join(f"{rule} ({', '.join(dict.fromkeys(targets))})" for rule, targets in owners.items())
    caught = next((finding.case for finding in row.violations if finding.case), None)
    return f"{rules} at {caught}" if caught else rules


def main(folder: Path, names: Sequence[str]) -> int:
    """Print the table; exit status 1 if a verdict, a rule or a target disagrees with the record."""
    if not (folder / "expected.tsv").is_file():
        print(f"{folder} has no expected.tsv; pass the folder of a corpus")
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
    parser = argparse.ArgumentParser(description="Judge a corpus of cases with a known right verdict.")
    parser.add_argument("--folder", type=Path, default=CORPUS, help="the corpus (default: %(default)s)")
    parser.add_argument("names", nargs="*", help="judge only the cases whose name contains one of these")
    chosen = parser.parse_args()
    sys.exit(main(chosen.folder.resolve(), chosen.names))
