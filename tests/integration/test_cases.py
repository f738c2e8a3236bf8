"""Reproduced bug reports: the gate says of each what was found out by hand."""

from __future__ import annotations

import pytest
from corpus import CORPUS, Case, Judged, judge_cases, read_cases

from export_gate.rules.base import Finding


@pytest.mark.slow
@pytest.mark.skipif(
    not CORPUS.is_dir(), reason=f"there is no corpus at {CORPUS}: name its folder in EXPORT_GATE_CORPUS"
)
def test_bug_reports_are_judged_as_recorded():
    """Each case has its recorded verdict, by a rule that fits what went wrong, on the targets that it went wrong on.

    One test, because one run of the worker observes them all.
    """
    judged = judge_cases(CORPUS, read_cases(CORPUS))
    assert [line for row in judged for line in row.disagreements()] == []


def judged(verdict: str, targets: dict[str, str], *found: tuple[str, str | None]) -> Judged:
    """A case with these recorded targets, and these rules and targets found."""
    recorded = {"exported-program": "pass", "pt2": "pass", "onnx": "pass", **targets}
    case = Case(name="c", fails=set(recorded.values()) != {"pass"}, targets=recorded, summary="s")
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
def test_disagreements_are_told(row: Judged, lines: list[str]):
    """A wrong verdict, an unfit rule and a wrong target are each one line; a right case has none."""
    assert list(row.disagreements()) == lines
