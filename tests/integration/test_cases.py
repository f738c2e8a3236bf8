"""Reproduced bug reports: the gate's verdict on each is the one that was found by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from judge_corpus import CORPUS, Case, Judged, judge_cases, read_cases, table

from export_gate.rules.base import Finding


@pytest.mark.slow(seconds=40)
@pytest.mark.parametrize("step", [8, pytest.param(1, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("folder", [CORPUS, CORPUS.with_name("corpus_2")], ids=lambda folder: folder.name)
def test_bug_reports_are_judged_as_recorded(folder: Path, step: int):
    """Each case has its recorded verdict, by a rule that fits what went wrong, on the targets that it went wrong on.

    One test, because one run of the worker observes them all.
    """
    judged = judge_cases(folder, read_cases(folder)[::step])
    assert [line for row in judged for line in row.disagreements()] == []


def judged(verdict: str, targets: dict[str, str], *found: tuple[str, str | None]) -> Judged:
    """A case with these recorded targets, and these rules and targets found."""
    recorded = {"exported-program": "pass", "pt2": "pass", "onnx": "pass", **targets}
    kind = "must-pass" if set(recorded.values()) <= {"pass", ""} else "must-fail"
    case = Case(name="c", recorded=kind, targets=recorded, summary="s")
    violations = [Finding(rule=r, severity="violation", model="c", message="m", hint="h", target=t) for r, t in found]
    return Judged(case=case, verdict=verdict, violations=tuple(violations), inputs=1, duration_s=0.0)


EXPORT_ERROR = dict.fromkeys(("exported-program", "pt2", "onnx"), "export-error")


@pytest.mark.parametrize(
    ("row", "lines"),
    [
        (judged("verified", {}), []),
        (judged("violations", {"onnx": "fail:value"}, ("value-mismatch", "onnx")), []),
        (judged("violations", {"onnx": "export-error"}, ("conversion-failed", "onnx")), []),
        (judged("violations", EXPORT_ERROR, ("export-failed", None)), []),
        (
            judged("verified", {"onnx": "fail:value"}),
            [
                "c: expected violations, got verified",
                "c, onnx (recorded: fail:value): expected value-mismatch, got nothing",
            ],
        ),
        (
            judged("violations", {"onnx": "fail:nan"}, ("value-mismatch", "onnx")),
            ["c, onnx (recorded: fail:nan): expected nonfinite-mismatch, got value-mismatch"],
        ),
        (
            judged("violations", {"onnx": "fail:value"}, ("value-mismatch", "onnx"), ("run-failed", "pt2")),
            ["c, pt2 (recorded: pass): expected no violation of its own, got run-failed"],
        ),
        (
            judged("violations", {"onnx": "fail:value"}, ("state-carried", None)),
            ["c, onnx (recorded: fail:value): expected a violation of its own, got state-carried of the model"],
        ),
    ],
)
def test_each_disagreement_is_one_line(row: Judged, lines: list[str]):
    """A wrong verdict, a wrong rule and a wrong target are one line each; a correct case has none."""
    assert list(row.disagreements()) == lines


NOT_MEASURED = dict.fromkeys(("exported-program", "pt2", "onnx"), "")


@pytest.mark.parametrize("verdict", ["verified", "violations"])
def test_either_accepts_both_verdicts_but_no_refusal(verdict: str):
    """If experts disagree about a case, both verdicts are right; a config that is not usable is always wrong."""
    row = judged(verdict, NOT_MEASURED)
    either = replace(row, case=replace(row.case, recorded="either"))
    assert list(either.disagreements()) == []
    assert list(replace(either, verdict="refused").disagreements()) == [
        "c: expected verified or violations, got refused"
    ]


def test_a_target_that_was_not_measured_says_nothing_about_rules():
    """If only the verdict was recorded, any rule on any target may give it."""
    row = judged("violations", NOT_MEASURED, ("run-failed", "pt2"))
    must_fail = replace(row, case=replace(row.case, recorded="must-fail"))
    assert list(must_fail.disagreements()) == []


def test_the_second_corpus_is_readable():
    """Every case has its folder with a contract, a verdict and, if it must fail, a cause."""
    cases = read_cases(CORPUS.parent / "corpus_2")
    assert len(cases) == 45
    for case in cases:
        assert (CORPUS.parent / "corpus_2" / case.name / "export-gate.yml").is_file()
        assert case.causes or case.recorded != "must-fail"


@pytest.mark.slow
def test_a_config_that_is_not_usable_is_reported_and_the_others_are_judged(tmp_path: Path):
    """The table says that the case was refused, and lists the config's problems below it."""
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "export-gate.yml").write_text("version: 2\n", encoding="utf-8")
    case = Case(name="broken", recorded="must-pass", targets=NOT_MEASURED, causes=("size",), summary="s")
    (row,) = judge_cases(tmp_path, (case,))
    lines = list(table((row,)))
    assert lines[1].split()[:4] == ["x", "broken", "must-pass", "refused"]
    assert lines[2] == "    broken: expected verified, got refused"
    assert lines[-1].startswith("    refused: ")
    assert "version" in lines[-1]
