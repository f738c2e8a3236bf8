"""What a report says is decided by results alone, and nothing unverified reads as verified."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import report_samples as samples

from export_gate.report.build import build_report
from export_gate.report.commands import Caller, reproduce
from export_gate.report.record import LADDER, STATES, Cell, Report, Row
from export_gate.report.render import render
from export_gate.report.results import Results
from export_gate.rules import CATALOGUE
from export_gate.wall.contract import Dim, ModelContract, Output, make_target
from export_gate.wall.observation import (
    CaseResult,
    ControlInput,
    HygieneObservation,
    ModelObservation,
    Probe,
    RunObservation,
)


def _run(*models: ModelObservation, **changes: object) -> Report:
    return build_report(_results(*models, **changes))


def _results(*models: ModelObservation, contracts: tuple[ModelContract, ...] = ()) -> Results:
    contracts = contracts or tuple(samples.contract(model.model) for model in models)
    return samples.results(contracts, RunObservation(environment=samples.ENVIRONMENT, models=models))


def _row(report: Report, model: str) -> Row:
    return next(row for row in report.rows if row.model == model)


def _cell(report: Report, model: str, target: str) -> Cell:
    return next(cell for cell in _row(report, model).cells if cell.target == target)


def _states(report: Report, model: str, target: str) -> str:
    (ladder,) = _cell(report, model, target).ladders
    return " ".join(f"{step.stage}={step.state}" for step in ladder.steps)


@pytest.mark.parametrize(
    ("run", "headline"),
    [
        (samples.green, "export-gate: 3 of 3 models verified"),
        (samples.red, "export-gate: 1 of 4 models verified, 3 violations, 1 warning"),
        (samples.problem, "export-gate: 1 of 2 models verified, 1 could not be checked"),
        (samples.broken, "export-gate: no verdict, the check itself failed; 0 of 2 models verified"),
        (_results, "export-gate: no models to check"),
        (lambda: _results(samples.model("m", samples.all_fine())), "export-gate: 1 of 1 model verified"),
    ],
)
def test_headline(run: Callable[[], Results], headline: str):
    """The verdict is one line that can be understood alone."""
    assert build_report(run()).headline == headline


def test_every_rule_has_a_rung():
    """Every rule's findings have a place on the ladder."""
    assert {rule.stage for rule in CATALOGUE} <= {*LADDER, None}
    assert {rule.name for rule in CATALOGUE if rule.stage is None} == {"worker-died", "timed-out"}


def test_ladder_of_a_verified_target():
    """An artifact that passed every stage is green on every rung."""
    report = build_report(samples.green())
    assert _states(report, "glyph-head", "onnx") == (
        "eager=ok export=ok convert=ok load=ok run=ok compare=ok guards=ok"
    )
    assert _states(report, "glyph-head", "exported-program") == (
        "eager=ok export=ok convert=not-applicable load=not-applicable run=ok compare=ok guards=ok"
    )


def test_ladder_of_a_failed_export():
    """What comes after a failure is skipped, not passed."""
    assert _states(build_report(samples.red()), "sentence-encoder", "onnx") == (
        "eager=ok export=failed convert=skipped load=skipped run=skipped compare=skipped guards=skipped"
    )


def test_ladder_of_a_death_at_run():
    """A dead worker is shown at the stage in which it died."""
    assert _states(build_report(samples.red()), "detector", "onnx") == (
        "eager=ok export=ok convert=ok load=ok run=failed compare=skipped guards=skipped"
    )


def test_ladder_of_a_mismatch_with_a_guard_warning():
    """Two findings are shown at their own rungs."""
    assert _states(build_report(samples.red()), "glyph-head", "onnx") == (
        "eager=ok export=ok convert=ok load=ok run=ok compare=failed guards=warned"
    )


def test_cells_say_why():
    """A failed cell names its rule, and shows a number only if the number is the reason."""
    report = build_report(samples.red())
    mismatch = _cell(report, "glyph-head", "onnx")
    assert (mismatch.state, mismatch.reason) == ("failed", "value-mismatch")
    assert mismatch.ratio == pytest.approx(3.1e-3 / 3.4e-5)
    died = _cell(report, "detector", "onnx")
    assert (died.state, died.reason, died.ratio) == ("failed", "worker-died", None)
    fine = _cell(report, "detector", "pt2")
    assert (fine.state, fine.reason, fine.ratio) == ("ok", "", pytest.approx(4e-7 / 3.4e-6))


def test_a_warning_is_no_failure():
    """A model with a guard warning is verified, and says so beside its margin."""
    onnx = samples.target("onnx", 2.1e-6, probes=samples.guard_probes())
    report = _run(samples.model("m", (*samples.all_fine()[:2], onnx)))
    cell = _cell(report, "m", "onnx")
    assert (cell.state, cell.reason) == ("warned", "guard-missing")
    assert cell.ratio == pytest.approx(2.1e-6 / 3.4e-5)
    assert report.counts.verified == 1
    assert report.headline == "export-gate: 1 of 1 model verified, 1 warning"


def test_the_margin_of_a_shape_mismatch_is_no_zero():
    """Outputs of another shape were not compared by value, so the cell has no `exact`."""
    wrong = samples.comparison(0.0, actual_shape=(8, 1), elements=0)
    cases = tuple(CaseResult(case=case, outputs=(wrong,)) for case in samples.CASES)
    report = _run(samples.model("m", (*samples.all_fine()[:2], samples.target("onnx", 0.0, cases=cases))))
    cell = _cell(report, "m", "onnx")
    assert (cell.state, cell.reason, cell.ratio) == ("failed", "shape-mismatch", None)
    assert cell.ladders[0].worst is None


def test_an_exact_output_that_differs_has_no_ratio():
    """Integers have no tolerance, so there is no ratio."""
    wrong = samples.comparison(1.0, expected_dtype="int64", actual_dtype="int64", mismatched_elements=3)
    cases = tuple(CaseResult(case=case, outputs=(wrong,)) for case in samples.CASES)
    report = _run(samples.model("m", (*samples.all_fine()[:2], samples.target("onnx", 0.0, cases=cases))))
    cell = _cell(report, "m", "onnx")
    assert (cell.state, cell.reason, cell.ratio) == ("failed", "value-mismatch", None)
    assert report.findings[0].times_over is None


def test_nothing_compared_is_never_green():
    """A target that was planned but not observed is not a pass, even if everything else is green."""
    report = _run(samples.model("m", samples.all_fine()[:2]))
    assert _cell(report, "m", "onnx").state == "failed"
    assert _row(report, "m").state == "failed"


def test_results_without_findings_are_not_green_by_themselves():
    """Even if no rule spoke, a target without comparisons is not shown as verified."""
    results = _results(samples.model("m", samples.all_fine()[:2]))
    report = build_report(replace(results, findings=()))
    assert _cell(report, "m", "onnx").state == "skipped"
    assert _row(report, "m").state == "skipped"
    assert report.counts.verified == 0


def test_a_model_that_was_not_run():
    """A planned model without observation is counted as unchecked and gets a command of its own."""
    seen = samples.model("a", samples.all_fine())
    report = _run(seen, contracts=(samples.contract("a"), samples.contract("b")))
    assert (_row(report, "b").state, _row(report, "b").reason) == ("skipped", "was not run")
    (problem,) = report.problems
    assert problem.message == "b: the run ended before this model was checked."
    assert problem.hint == "Run the model by itself."
    assert problem.command == "export-gate run b"


def test_a_separate_export_has_its_own_ladder():
    """A failure at batch=1 makes the cell red, but not the main export's ladder."""
    alone = samples.target(
        "onnx", 0.0, separate={"batch": 1}, probes=(), cases=(_case("normal-1@batch=1", samples.comparison(1.0)),)
    )
    main = samples.target("onnx", 0.0)
    controls = samples.controls((*samples.CASES, "normal-1@batch=1"))
    observed = samples.model("m", (alone, main), controls=controls)
    report = _run(observed, contracts=(samples.contract("m", targets=(make_target("onnx"),)),))
    cell = _cell(report, "m", "onnx")
    assert [(ladder.label, ladder.state) for ladder in cell.ladders] == [("onnx", "ok"), ("onnx at batch=1", "failed")]
    assert cell.state == "failed"
    assert [(artifact.label, artifact.verified) for artifact in report.artifacts] == [
        ("onnx at batch=1", False),
        ("onnx", True),
    ]
    assert _row(report, "m").compared == 31


def _case(name: str, *outputs: object) -> CaseResult:
    return CaseResult(case=name, outputs=outputs)  # type: ignore[arg-type]


def test_ignored_guards_are_not_applicable():
    """A policy of `ignore` leaves the rung empty, neither green nor red."""
    onnx = samples.target("onnx", 0.0, guards="ignore", reached="compare", probes=())
    contract = samples.contract("m", targets=(make_target("onnx", guards="ignore"),))
    report = _run(samples.model("m", (onnx,)), contracts=(contract,))
    assert _states(report, "m", "onnx").endswith("compare=ok guards=not-applicable")
    assert _cell(report, "m", "onnx").state == "ok"


def test_an_artifact_that_was_handed_in_is_not_converted():
    """With `artifact:` the gate exported and converted nothing for that target."""
    contract = samples.contract("m", targets=(make_target("onnx", artifact="dist/model.onnx"),))
    report = _run(samples.model("m", (samples.target("onnx", 0.0),)), contracts=(contract,))
    assert _states(report, "m", "onnx").startswith("eager=ok export=not-applicable convert=not-applicable load=ok")


def test_the_same_finding_of_several_targets_is_told_once():
    """One export bug is one block with each target's number, and still counts as three violations."""
    wrong = tuple(
        samples.target(name, {"halves-1@batch=8": error})
        for name, error in (("exported-program", 1e-3), ("pt2", 2e-3), ("onnx", 3e-3))
    )
    report = _run(samples.model("m", wrong))
    assert report.counts.violations == 3
    (view,) = report.findings
    assert view.targets == ("pt2", "exported-program", "onnx")
    assert [finding.measured for finding in view.also] == [1e-3, 3e-3]


def test_different_findings_of_one_rule_stay_apart():
    """Guards missing on different dims are different facts."""
    first = Probe(kind="above-max", axis="batch", declared="2..16", tried="17", answer="accepted-differs")
    second = Probe(kind="wrong-size", axis="x[2]", declared="24", tried="25", answer="accepted-differs")
    targets = (
        samples.target("exported-program", 0.0, probes=(first,)),
        samples.target("pt2", 0.0, probes=(second,)),
        samples.target("onnx", 0.0),
    )
    report = _run(samples.model("m", targets))
    assert {view.targets for view in report.findings} == {("exported-program",), ("pt2",)}


def test_notes_that_ask_for_nothing_are_one_line_of_the_model():
    """What was accepted with eager's results is mentioned once for all targets, at the end, and folded."""
    equal = tuple(
        Probe(kind="above-max", axis="batch", declared="2..16", tried=tried, answer="accepted-equal")
        for tried in ("17", "18")
    )
    targets = tuple(samples.target(name, 0.0, probes=equal) for name in ("exported-program", "pt2", "onnx"))
    report = _run(samples.model("m", targets))

    (view,) = report.findings
    assert view.asks_nothing
    assert view.statement == (
        "exported-program, onnx and pt2 accept inputs outside the contract, without a wrong result: batch=17 and "
        "batch=18"
    )
    assert report.counts.notes == 1
    assert "batch=17" not in render(report, "terminal")
    for kind in ("comment", "summary"):
        (line,) = [line for line in render(report, kind).splitlines() if "batch=17" in line]
        assert line.startswith("- 📝 `m`: exported-program, onnx and pt2 accept")


def test_the_worst_models_come_first():
    """The worst models come first in the table, the stages and the artifacts; equal ones keep the config's order."""
    report = build_report(samples.red())
    states = [row.state for row in report.rows]

    assert states == sorted(states, key=STATES.index)
    assert [row.model for row in report.rows if row.state == "failed"] == ["glyph-head", "sentence-encoder", "detector"]
    crowd = build_report(samples.crowd(20))
    assert {row.state for row in crowd.rows[:20]} == {"failed"}
    assert {row.state for row in crowd.rows[20:]} == {"ok"}


def test_what_the_command_line_left_out_is_in_the_verdict():
    """A run of one target and one case does not look like a whole run."""
    results = samples.green()
    models = tuple(
        replace(model, controls=replace(model.controls, unselected=5)) if model.controls else model
        for model in results.run.models
    )
    narrow = replace(
        results, run=replace(results.run, models=models), unselected_models=2, unselected_targets=1, narrowed=True
    )

    left = f"2 models, 1 target, {5 * len(models)} control inputs"
    assert build_report(narrow).headline.endswith(f"; the command line left out {left}")
    assert "left out" not in build_report(results).headline


def test_the_terminal_says_what_the_budget_dropped():
    """For each model, one line says which control inputs were dropped."""
    text = render(build_report(samples.green()), "terminal")

    assert "sentence-encoder: 12 control inputs left out: the budget of 200 GFLOP for each target\n" in text


def test_findings_come_worst_first():
    """Violations before warnings, in the judge's order: causes before effects."""
    report = build_report(samples.red())
    assert [(view.severity, view.finding.rule) for view in report.findings] == [
        ("violation", "worker-died"),
        ("violation", "export-failed"),
        ("violation", "value-mismatch"),
        ("warning", "guard-missing"),
    ]
    joined = replace(samples.red(), findings=tuple(reversed(samples.red().findings)))
    assert [view.severity for view in build_report(joined).findings] == ["violation"] * 3 + ["warning"]


def test_a_statement_does_not_repeat_its_title():
    """The place that a message starts with is the title of its block."""
    view = build_report(samples.red()).findings[2]
    assert view.statement == "the largest difference is 3.1e-03 at [5, 1] (eager 1.75, onnx 1.7531), allowed 3.4e-05"
    assert view.times_over == pytest.approx(3.1e-3 / 3.4e-5)


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (("export-gate.yml",), "export-gate run"),
        (("export-gate.yml", "m", "onnx", "a@batch=2"), "export-gate run m --target onnx --case 'a@batch=2'"),
        (("export-gate.yml", "m", None, "plain"), "export-gate run m --case 'plain'"),
        (("ml/gate.yml", "m"), "export-gate run --config ml/gate.yml m"),
        (("/home/me/w/export-gate.yml", "m"), "export-gate run --config /home/me/w/export-gate.yml m"),
        (("export-gate.yml", "m; rm -rf ~"), "export-gate run 'm; rm -rf ~'"),
        (("export-gate.yml", "m", None, "a'$(x)"), "export-gate run m --case 'a'\"'\"'$(x)'"),
        (("export-gate.yml", "m", None, "file[3]*"), "export-gate run m --case 'file[[]3][*]'"),
    ],
)
def test_reproduce(arguments: tuple[str, ...], command: str):
    """Commands can be pasted in the folder where the gate was started, and match exactly their case."""
    config, *rest = arguments
    assert reproduce(Caller(config=config), *rest) == command


def test_evidence_of_one_model():
    """The sentence has the number of inputs, which ones, their hash, and says that it is not a proof."""
    report = _run(samples.model("m", samples.all_fine()))
    assert report.evidence == (
        "Verified at 30 control inputs (normal, uniform, halves, constant, zeros, ...; batch 2, 8, 16), "
        "sha256 `ab12f09c4d5e`; evidence at those points, not a proof."
    )


def test_inputs_that_a_program_asks_for_count_as_well():
    """So that the totals of a model and of its run agree; the digest is that of the control set alone."""
    more = CaseResult(case="branch", outputs=(samples.comparison(),))
    targets = tuple(replace(seen, cases=(*seen.cases, more)) for seen in samples.all_fine())
    assert _run(samples.model("m", targets)).evidence.endswith(
        "sha256 `ab12f09c4d5e`, and at 1 more for the program's own conditions and constants; evidence at those "
        "points, not a proof."
    )
    both = build_report(
        samples.results((samples.contract("m"),), RunObservation(models=(samples.model("m", targets),)))
    )
    assert both.counts.control_inputs == 31


def test_an_output_that_is_not_compared_is_said_beside_the_evidence():
    """A model whose output is ignored reads as exact otherwise."""
    ignoring = replace(samples.contract("m"), outputs=(Output(name="scores", leaf="ignore"),))
    report = _run(samples.model("m", samples.all_fine()), contracts=(ignoring,))
    assert report.evidence.endswith(
        "sha256 `ab12f09c4d5e`; `scores` is not compared; evidence at those points, not a proof."
    )


def test_evidence_of_a_run():
    """Models that were never compared are not among the evidence."""
    assert build_report(samples.red()).evidence == (
        "Checked at 90 control inputs over 3 models; evidence at those points, not a proof."
    )
    assert build_report(samples.broken()).evidence == "Nothing was compared."


def test_evidence_of_many_sizes_is_short():
    """More than five sizes are summarised by their ends."""
    cases = tuple(f"normal-1@batch={size}" for size in range(2, 10))
    targets = tuple(
        replace(target, cases=tuple(_case(case, samples.comparison()) for case in cases))
        for target in samples.all_fine()
    )
    report = _run(samples.model("m", targets, controls=samples.controls(cases)))
    assert report.rows[0].evidence.startswith("verified at 8 control inputs (normal; batch 2, 3, 4, ..., 9), sha256")


def test_part_of_the_control_set():
    """A target with fewer cases than the control set does not claim all of it."""
    some = tuple(replace(target, cases=target.cases[:4]) for target in samples.all_fine())
    assert _run(samples.model("m", some)).rows[0].evidence.startswith("checked at 4 of 30 control inputs (")


def test_affine_line():
    """The affine reduction is claimed only for artifacts that are affine, compared, and had the basis points."""
    assert [row.affine for row in build_report(samples.green()).rows] == [
        "",
        "affine in its input: the d+1 basis points stand for every input, up to rounding",
        "",
    ]


def test_affine_line_of_some_targets():
    """If only some artifacts are affine, they are named."""
    basis = replace(samples.controls(), inputs=(ControlInput(name="basis", family="basis", group="affine"),))
    cases = (_case("basis", samples.comparison()),)
    targets = tuple(replace(target, affine=target.target != "onnx", cases=cases) for target in samples.all_fine(0.0))
    report = _run(samples.model("m", targets, affine=True, controls=basis))
    assert report.rows[0].affine == (
        "affine in its input: the d+1 basis points stand for every input, up to rounding (in exported-program, pt2)"
    )


def test_left_out_is_said():
    """What the control set does not cover is in the report."""
    controls = samples.controls(
        left_out=12, left_out_reason=samples.FLOP_BUDGET, undeclared_range=("x",), notes=("affine basis skipped",)
    )
    report = _run(samples.model("m", samples.all_fine(), controls=controls))
    assert report.rows[0].left_out == (
        "12 control inputs left out: the budget of 200 GFLOP for each target",
        "input x has no declared range: wide values were not tried",
        "affine basis skipped",
    )


def test_dims():
    """Declared ranges are written as a reviewer would write them."""
    dims = (
        Dim(name="batch", min=2, max=16, separate=(1,)),
        Dim(name="side", min=8, max=64, multiple_of=8),
        Dim(name="seq", min=1, max=8, mode="auto"),
    )
    report = _run(samples.model("m", samples.all_fine()), contracts=(samples.contract("m", dims=dims),))
    assert report.rows[0].dims == "batch 2..16 and 1 separately, side 8..64 in steps of 8, seq 1..8 (auto)"


def test_environment():
    """One line says where it ran: versions, vector width, system; paths of the machine say nothing to readers."""
    assert build_report(samples.green()).environment == (
        "Python 3.11.7, torch 2.13.0+cpu, numpy 2.4.1, onnx 1.23.0, onnxscript 0.7.2, onnxruntime 1.32.0; AVX2; "
        "1 thread; Linux x86_64"
    )
    assert build_report(samples.broken()).environment == ""


def test_a_share_of_a_bound_that_zeros_would_pass_is_no_number():
    """No `<1%` where the bound exceeds the output itself: it would say that a wrong output is far from failing."""
    small = samples.comparison(1e-9, expected_max_abs=1e-6)
    telling = samples.comparison(2e-6, output="other", expected_max_abs=1.0)
    exact = samples.comparison(0.0, expected_max_abs=1e-6)
    for outputs, expected in (((small,), None), ((small, telling), 2e-6 / 2e-5), ((exact,), 0.0)):
        cases = tuple(CaseResult(case=case, outputs=outputs) for case in samples.CASES)
        report = _run(samples.model("m", (*samples.all_fine()[:2], samples.target("onnx", 0.0, cases=cases))))
        found = _cell(report, "m", "onnx").ratio
        assert found == (expected if expected is None else pytest.approx(expected))


def test_the_worst_comparison_is_the_one_closest_to_its_bound():
    """The margin is by ratio, over all outputs and cases; NaN counts as infinitely bad."""
    outputs = (samples.comparison(1e-6), samples.comparison(9e-7, output="small", expected_max_abs=0.0))
    cases = tuple(CaseResult(case=case, outputs=outputs) for case in samples.CASES)
    report = _run(samples.model("m", (*samples.all_fine()[:2], samples.target("onnx", 0.0, cases=cases))))
    worst = _cell(report, "m", "onnx").ladders[0].worst
    assert worst is not None
    assert worst.norm is not None
    assert (worst.output, worst.norm.measured, worst.norm.allowed) == ("small", 9e-7, 1e-5)
    undefined = samples.target("onnx", {"high-1@batch=2": math.nan})
    cell = _cell(_run(samples.model("m", (*samples.all_fine()[:2], undefined))), "m", "onnx")
    assert (cell.state, cell.ratio) == ("failed", None)
    assert cell.ladders[0].worst is not None
    assert cell.ladders[0].worst.case == "high-1@batch=2"


def _stages(report: Report) -> dict[str, str]:
    (row,) = report.rows
    return {step.stage: step.state for step in row.cells[0].ladders[0].steps}


def test_stages_after_a_root_cause_mean_nothing():
    """Agreement with a model that is not what ships is no good news, and neither is its worst error."""
    for facts in (
        HygieneObservation(train_modules=("drop (Dropout)",), train_module_count=2),
        HygieneObservation(repeats=6, nondeterministic=(samples.comparison(0.5, mismatched_elements=1),)),
    ):
        report = _run(samples.model("m", samples.all_fine(), hygiene=facts))

        assert (_stages(report)["eager"], _stages(report)["compare"], _stages(report)["guards"]) == (
            "failed",
            "moot",
            "moot",
        )
        assert {ladder.worst for cell in report.rows[0].cells for ladder in cell.ladders} == {None}


def test_train_mode_that_changes_nothing_leaves_stages_alone():
    """No module behaves differently in it, so that the comparison stands."""
    report = _run(samples.model("m", samples.all_fine(), hygiene=HygieneObservation(train_module_count=2)))

    assert _stages(report)["compare"] == "ok"


def test_a_comparison_that_failed_by_shape_shows_no_error():
    """The numbers of other inputs would read as good news."""
    other = samples.comparison(0.0, actual_shape=(8, 4))
    seen = samples.target("onnx", 0.0)
    cases = (CaseResult(case=seen.cases[0].case, outputs=(other,)), *seen.cases[1:])
    targets = (samples.target("exported-program", 0.0), samples.target("pt2", 0.0), replace(seen, cases=cases))
    report = _run(samples.model("m", targets))

    assert _cell(report, "m", "onnx").ladders[0].worst is None
    assert _cell(report, "m", "pt2").ladders[0].worst is not None


def test_percentages_are_explained_only_where_there_are_some():
    """`exact` explains itself."""
    exact = render(_run(samples.model("m", samples.all_fine(0.0))), "comment")

    assert "Percentages" not in exact
    assert "Percentages" in render(_run(samples.model("m", samples.all_fine())), "comment")


def test_the_evidence_of_a_single_model_is_said_once():
    """In the last line, where it is not folded."""
    text = render(_run(samples.model("m", samples.all_fine())), "comment")

    assert text.count("evidence at those points, not a proof") == 1
