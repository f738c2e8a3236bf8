"""One cause is one block in a report, however each target and output shows it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import report_samples as samples

from export_gate.report.build import build_report
from export_gate.report.record import Report
from export_gate.report.render import render
from export_gate.rules.base import Finding
from export_gate.wall.observation import Branch, CaseResult, Failure, RunObservation, TargetObservation
from export_gate.wall.source import SourceLine

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


def _findings(*findings: Finding) -> Report:
    """A report of these alone."""
    return build_report(replace(samples.red(), findings=findings))


def _wrong(output: str, **changes: object) -> Finding:
    whole: dict[str, object] = {"cause": "operator", "owner": "converter", "hint": "Rewrite it.", **changes}
    return Finding(
        rule="value-mismatch",
        severity="violation",
        model="glyph-head",
        target="onnx",
        output=output,
        case=WRONG,
        message=f"glyph-head, onnx, output '{output}', case {WRONG}: the largest difference is 1",
        measured=1.0,
        allowed=0.5,
        **whole,
    )


def test_outputs_with_one_cause_are_one_block():
    """Each has its line with its numbers, and the headline counts both."""
    report = _findings(_wrong("logits"), _wrong("boxes"), _wrong("masks", hint="Another way."))
    first, other = report.findings

    assert first.outputs == ("logits", "boxes")
    assert first.statement == "2 outputs, same cause; in `logits`, the largest difference is 1"
    assert (other.outputs, other.statement) == (("masks",), "the largest difference is 1")
    assert (report.counts.violations, report.counts.causes) == (3, 2)
    assert "3 violations (2 causes)" in report.headline
    text = render(report, "comment")
    assert "onnx, outputs `logits`, `boxes`: value-mismatch" in text
    assert f"- onnx, `boxes`: measured **1**, allowed **0.5** at `{WRONG}`" in text


@pytest.mark.parametrize("changes", [{"cause": "unknown"}, {"cause": "rounding"}])
def test_outputs_without_a_known_cause_stay_apart(changes: dict[str, object]):
    """Nothing says that it is the same one, and rounding is each output's own."""
    assert len(_findings(_wrong("logits", **changes), _wrong("boxes", **changes)).findings) == 2


def test_state_explains_the_differences_of_its_output():
    """Eager itself returns something else at the second call; other outputs have another cause."""
    root = Finding(
        rule="state-carried", severity="violation", model="glyph-head", output="logits", cause="state",
        message="glyph-head, output 'logits': the result depends on earlier calls", hint="Keep none.",
    )  # fmt: skip
    second = replace(root, output="masks", message="glyph-head, output 'masks': the result depends on earlier calls")
    wrong = [_wrong(output, cause="state") for output in ("logits", "boxes", "masks")]
    report = _findings(root, second, *wrong)

    assert [view.finding.rule for view in report.findings] == ["state-carried", "value-mismatch"]
    assert report.findings[0].instead == "onnx differs from eager because of it (value-mismatch)"
    assert [view.outputs for view in report.findings] == [("logits", "masks"), ("boxes",)]
    assert (report.counts.violations, report.counts.causes) == (5, 2)
    assert sum(len(view.marks) for view in report.findings) == 5


@pytest.mark.parametrize(("line", "blocks"), [(9, 1), (10, 2)])
def test_a_refusal_of_eager_explains_that_of_the_export_at_its_line(line: int, blocks: int):
    """The contract promises sizes that the model does not take; nothing else is known of another line."""

    def at(number: int) -> SourceLine:
        return SourceLine(path="model.py", line=number, text="return x * mask")

    eager = Finding(
        rule="contract-broken", severity="violation", model="glyph-head", cause="eager", source=at(9),
        message="glyph-head: eager breaks the contract", hint="Declare one dim.",
    )  # fmt: skip
    export = replace(eager, rule="export-failed", cause="size-guard", source=at(line), message="glyph-head: refused")
    report = _findings(eager, export)

    assert len(report.findings) == report.counts.causes == blocks
    told = "torch.export stops at the same line (export-failed)"
    assert report.findings[0].instead == (told if blocks == 1 else "")
