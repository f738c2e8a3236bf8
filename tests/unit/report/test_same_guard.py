"""A condition on sizes is one finding in a report, however each target shows it."""

from __future__ import annotations

from dataclasses import replace

import report_samples as samples

from export_gate.report.build import build_report
from export_gate.report.record import Report
from export_gate.wall.observation import Branch, CaseResult, Failure, RunObservation, TargetObservation

WRONG = "normal-1@batch=8"
REFUSED = "normal-1@batch=16"
BRANCH = Branch(words="batch >= 8", cases=(REFUSED, WRONG), dims=("batch",))


def _refusing(name: str, case: str) -> TargetObservation:
    failure = Failure(stage="run", kind="exception", type="AssertionError", message="Guard failed: x.size()[0] < 8")
    fine = samples.target(name, 0.0)
    cases = tuple(CaseResult(case=c.case, failure=failure) if c.case == case else c for c in fine.cases)
    return replace(fine, cases=cases)


def _report(refused: str, *branches: Branch) -> Report:
    targets = (
        _refusing("exported-program", refused),
        _refusing("pt2", refused),
        samples.target("onnx", {WRONG: 1.0}),
    )
    model = samples.model("glyph-head", targets, branches=branches)
    return build_report(
        samples.results(
            (samples.contract("glyph-head"),), RunObservation(environment=samples.ENVIRONMENT, models=(model,))
        )
    )


def test_a_silently_wrong_result_leads_and_refusals_are_one_line_of_it():
    """The refusals stay violations of their targets; the block is one."""
    report = _report(REFUSED, BRANCH)
    shown = [view for view in report.findings if view.severity == "violation"]

    assert [view.finding.rule for view in shown] == ["value-mismatch"]
    assert shown[0].instead == "exported-program and pt2 refuse such sizes instead (range-narrowed)"
    assert report.counts.violations == 3
    assert {cell.target: cell.state for cell in report.rows[0].cells} == dict.fromkeys(report.targets, "failed")


def test_other_refusals_are_findings_of_their_own():
    """Nothing says that they have the same cause."""
    assert {view.finding.rule for view in _report(REFUSED).findings} >= {"value-mismatch", "range-narrowed"}
