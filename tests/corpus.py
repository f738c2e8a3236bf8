"""A folder of reproduced bug reports, each a project with a known right verdict, judged in one run of the worker.

`python tests/corpus.py FOLDER [NAME ...]` prints a table: verdict against expected, the rules, the control input that
caught it, and what each target did.
"""

from __future__ import annotations

import csv
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from export_gate.config import load_config
from export_gate.contract import PROTOCOL, Job, Request
from export_gate.observe import observe
from export_gate.rules.base import Finding
from export_gate.rules.judge import judge

CORPUS = Path(os.environ.get("EXPORT_GATE_CORPUS", Path(__file__).parents[2] / "shared" / "cases"))
"""Handed around apart from the project; the tests that need it are skipped with a notice where it is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One row of expected.tsv."""

    name: str
    fails: bool
    targets: dict[str, str]
    """Target -> what was measured by hand: `pass`, `fail:value`, `export-error`, ..."""
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One case with what the gate says."""

    case: Case
    verdict: str
    violations: tuple[Finding, ...]
    inputs: int
    duration_s: float

    @property
    def is_right(self) -> bool:
        """Whether the verdict is the expected one."""
        return self.verdict == ("violations" if self.case.fails else "verified")


def read_cases(folder: Path) -> tuple[Case, ...]:
    """The rows of `expected.tsv`."""
    with (folder / "expected.tsv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    return tuple(
        Case(
            name=row["case"],
            fails=row["verdict"] == "must-fail",
            targets={name: row[name] for name in ("exported-program", "pt2", "onnx")},
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
    seen = {model.model: model for model in run.models}
    judged = []
    for case, job in zip(cases, jobs, strict=True):
        alone = replace(run, models=tuple(model for name, model in seen.items() if name == case.name))
        judgement = judge((job.contract,), alone)
        model = seen.get(case.name)
        judged.append(
            Judged(
                case=case,
                verdict=judgement.verdict,
                violations=tuple(f for f in judgement.findings if f.severity == "violation"),
                inputs=len(model.controls.inputs) if model and model.controls else 0,
                duration_s=model.duration_s if model else 0.0,
            )
        )
    return tuple(judged)


def _job(project: Path, name: str, scratch: Path) -> Job:
    config = load_config(project / "export-gate.yml")
    return Job(
        contract=replace(config.models[0], name=name),
        base=str(project),
        pythonpath=config.pythonpath,
        artifacts=str(scratch / ".export-gate" / "artifacts" / name),
    )


def main(folder: Path, names: Sequence[str]) -> int:
    """Print the table; exit status 1 where a verdict is wrong."""
    cases = [case for case in read_cases(folder) if not names or any(name in case.name for name in names)]
    started = time.perf_counter()
    judged = judge_cases(folder, cases)
    for row in judged:
        mark = "ok   " if row.is_right else "WRONG"
        expected = "must-fail" if row.case.fails else "must-pass"
        rules = ", ".join(dict.fromkeys(f"{f.rule}[{f.target or 'model'}]" for f in row.violations))
        caught = next((f.case for f in row.violations if f.case), "")
        print(f"{mark} {row.case.name:36} {expected} {row.verdict:10} {row.inputs:3} inputs {row.duration_s:5.1f} s  {rules}  {caught}")
        if not row.is_right:
            print(f"      expected {row.case.targets}: {row.case.summary}")
            for finding in row.violations:
                print(f"      {finding.message}")
    right = sum(row.is_right for row in judged)
    print(f"{right} of {len(judged)} verdicts right in {time.perf_counter() - started:.0f} s")
    return 0 if right == len(judged) else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else CORPUS, sys.argv[2:]))
