"""What a change loosens is right below the verdict of every report, and decides the verdict if the base says so."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import report_samples as samples

from export_gate.loosening.record import CONFIG, Alteration, ConfigChange, Policy
from export_gate.outcome.judging import Outcome, fail_on_warnings, judged
from export_gate.report.html import render_html
from export_gate.report.junit import junit
from export_gate.report.render import Format, render
from export_gate.report.results import read_results, write_results
from export_gate.report.sarif import sarif

TOLERANCE = "onnx tolerance 100x (1e-5 -> 1e-3)"


def outcome(policy: Policy = "warn", more: int = 0) -> Outcome:
    """A green run whose change raises a tolerance, removes a model, and tightens one thing."""
    alterations = (
        Alteration(effect="loosened", model="glyph-head", key="targets.onnx.tolerance", what=TOLERANCE),
        Alteration(effect="loosened", model="gone", what="removed, so that it is not checked any more"),
        Alteration(effect="loosened", model=CONFIG, key="python", what="python a -> b"),
        Alteration(effect="tightened", model="glyph-head", key="controls.limit", what="controls.limit 1 -> 2"),
        *(Alteration(effect="loosened", model=f"m{n}", what=f"controls.limit {n} -> 0") for n in range(more)),
    )
    change = ConfigChange(origin="export-gate.yml at 1a2b3c4d5e", policy=policy, alterations=alterations)
    return judged(replace(samples.green(), change=change, findings=()))


def test_further_inputs_that_crowd_out_others_loosen_the_check():
    """Only the run knows, so the judge says it: again whenever it judges, and never twice."""
    run = samples.green().run
    full = replace(samples.controls(), left_out=5, left_out_reason="beyond controls.limit of 120 cases")
    models = tuple(replace(model, controls=full) for model in run.models)
    more = Alteration(effect="changed", model="glyph-head", key="controls.data.a.npz", what="controls.data.a.npz added")
    change = ConfigChange(origin="export-gate.yml at 1a2b3c4d5e", policy="fail", alterations=(more,))
    crowded = judged(replace(samples.green(), run=replace(run, models=models), change=change, findings=()))

    assert crowded.results.verdict == "violations"
    assert "controls.data.a.npz added, which leaves out other inputs: 5 beyond" in crowded.judgement.findings[0].message
    assert judged(crowded.results).judgement == crowded.judgement
    assert judged(replace(samples.green(), change=change, findings=())).results.verdict == "verified"


@pytest.mark.parametrize("format", ["comment", "summary", "markdown"])
def test_a_loosened_check_is_right_under_the_verdict(format: Format):  # noqa: A002
    """It comes before the table of models, with the factor; tightening is one folded line."""
    text = render(outcome().report, format)

    verdict, _, loosened, _, first, *_ = text.splitlines()
    assert "models verified, 3 warnings" in verdict
    assert loosened == "⚠️ **This change loosens the check** (compared with `export-gate.yml at 1a2b3c4d5e`):"
    assert first == "- `glyph-head`: onnx tolerance 100x (1e-5 -&gt; 1e-3)"
    assert text.index("`gone`: removed") < text.index("| model |")
    assert "<summary>The change also tightens or replaces 1 check</summary>" in text


def test_the_terminal_says_it_above_its_verdict():
    """The verdict is the last line of a terminal, so what matters most is right above it."""
    lines = render(outcome().report, "terminal").splitlines()
    start = next(place for place, line in enumerate(lines) if "this change loosens the check" in line)

    assert lines[start + 1 : start + 4] == [
        f"  glyph-head: {TOLERANCE}",
        "  gone: removed, so that it is not checked any more",
        "  python a -> b",
    ]
    assert len(lines) - start < 12


def test_the_page_says_it_in_its_header():
    """It is right below the verdict."""
    done = outcome()
    page = render_html(done.results, done.report)
    header = page[page.index("<header") : page.index("</header>")]

    assert "This change loosens the check" in header
    assert "<code>glyph-head</code>: onnx tolerance 100x (1e-5 -&gt; 1e-3)" in header


def test_many_are_counted():
    """A comment must have room for the models too, so many are counted."""
    text = render(outcome(more=100).report, "comment")

    assert "- and 83 more" in text
    assert "controls.limit 99" not in text


def test_a_base_that_fails_it_makes_it_violations():
    """The exit code is 1, and every report agrees with it."""
    done = outcome("fail")

    assert (done.judgement.verdict, done.judgement.exit_code) == ("violations", 1)
    assert "3 violations" in done.report.headline
    assert outcome().judgement.exit_code == 0
    assert fail_on_warnings(outcome()).judgement.exit_code == 1


def test_a_config_that_fails_on_warnings_decides_wherever_it_is_judged(tmp_path: Path):
    """The results contain the setting, so that no later job can forget it."""
    strict = judged(replace(outcome().results, fail_on="warning"))
    write_results(strict.results, tmp_path / "results.json")

    assert (strict.judgement.verdict, strict.judgement.exit_code) == ("violations", 1)
    assert judged(read_results(tmp_path / "results.json")).judgement == strict.judgement


def test_models_keep_their_own_verdict():
    """A loosened tolerance is not a state of the model in the table."""
    assert [row.state for row in outcome("fail").report.rows] == [
        row.state for row in judged(samples.green()).report.rows
    ]


def test_results_and_sarif_carry_it(tmp_path: Path):
    """The file is read back, also with a model that has no contract any more, and code scanning gets each one."""
    done = outcome("fail")
    write_results(done.results, tmp_path / "results.json")

    assert judged(read_results(tmp_path / "results.json")).judgement == done.judgement
    found = json.loads(sarif(done.results, done.report))["runs"][0]["results"]
    texts = [each["message"]["text"] for each in found if each["ruleId"] == "check-loosened"]
    assert texts[0].startswith(f"glyph-head: the change loosens the check: {TOLERANCE}\nNext: Restore it.")
    assert len(texts) == 3
    commands = {each["properties"]["reproduce"] for each in found if each["ruleId"] == "check-loosened"}
    assert commands == {"export-gate run", "export-gate run glyph-head"}  # `run` knows neither the config nor `gone`


def test_junit_is_red_because_of_it():
    """What is about the config, or a model that is gone, has a suite of its own."""
    done = outcome("fail")
    suites = ET.fromstring(junit(done.results, done.report))
    failed = {suite.get("name"): suite.get("failures") for suite in suites if suite.get("failures") != "0"}

    assert failed == {"glyph-head": "1", CONFIG: "1", "gone": "1"}
    assert [failure.text for failure in suites.iter("failure")][-1].endswith(
        "run: export-gate run\nbefore: export-gate.yml at 1a2b3c4d5e"
    )


def test_tests_of_junit_have_names_of_their_own():
    """Two keys of the config that a change loosens are two tests."""
    keys = [Alteration(effect="loosened", model=CONFIG, key=key, what=f"{key} a -> b") for key in ("python", "relaxed")]
    change = ConfigChange(origin="o", policy="fail", alterations=tuple(keys))
    done = judged(replace(samples.green(), change=change, findings=()))
    suites = ET.fromstring(junit(done.results, done.report))

    names = [test.get("name") for test in suites.iter("testcase") if test.find("failure") is not None]
    assert names == ["check-loosened", "check-loosened 2"]


def test_a_hostile_value_stays_in_its_line():
    """Names and values may be a stranger's: they make no mention, no markup and no command."""
    hostile = "python `x` -> <b>@owner</b>\n::error::owned"
    change = ConfigChange(origin="o", alterations=(Alteration(effect="loosened", model=CONFIG, what=hostile),))
    report = judged(replace(samples.green(), change=change, findings=())).report

    for format in ("comment", "summary", "terminal"):  # noqa: A001
        text = render(report, format)
        assert not any(line.lstrip().startswith("::") for line in text.splitlines())
        assert format == "terminal" or "<b>" not in text
        assert format == "terminal" or "@owner" not in text.replace("@\u2060owner", "").replace("@<!-- -->owner", "")


@pytest.mark.parametrize("is_one_model", [True, False])
def test_a_crowd_does_not_hide_one(is_one_model: bool):
    """Of many, a part is shown: those of which there are few."""
    many = tuple(
        Alteration(
            effect="loosened", model="m" if is_one_model else f"m{n}", key=f"env.V{n}", what=f"env.V{n} added, 1"
        )
        for n in range(30)
    )
    one = Alteration(effect="loosened", model="m", key="targets.onnx.tolerance", what=TOLERANCE)
    change = ConfigChange(origin="export-gate.yml at 1a2b3c4d5e", alterations=(*many, one))

    for format_ in ("comment", "terminal"):
        text = render(judged(replace(samples.green(), change=change, findings=())).report, format_)
        assert 0 < text.find("onnx tolerance 100x") < text.index("V0")
