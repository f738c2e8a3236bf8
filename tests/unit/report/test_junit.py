"""JUnit XML: red exactly if the verdict is, in the shape that CI servers accept, whatever the strings are."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
import report_samples as samples
from goldens import golden
from hostile_samples import hostile
from hypothesis import given, settings
from hypothesis import strategies as st
from junitparser import JUnitXml

from export_gate.report.build import build_report
from export_gate.report.escape import visible
from export_gate.report.junit import junit
from export_gate.report.results import Results
from export_gate.rules.base import Finding
from export_gate.wall.contract import ModelContract, Waiver, make_target
from export_gate.wall.observation import CaseResult, ModelObservation, RunObservation, Structure

MESSAGE = {"type", "message"}
SHAPE: dict[str, tuple[set[str], set[str], set[str]]] = {
    "testsuites": (set(), {"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors"},
        {"group", "time", "skipped", "timestamp", "hostname", "id", "package", "file", "log", "url", "version"},
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
    ),
    "properties": (set(), set(), {"property"}),
    "property": ({"name", "value"}, set(), set()),
    "testcase": (
        {"name"},
        {"time", "classname", "group"},
        {"skipped", "error", "failure", "system-out", "system-err"},
    ),
    "failure": (set(), MESSAGE, set()),
    "error": (set(), MESSAGE, set()),
    "skipped": (set(), MESSAGE, set()),
    "system-out": (set(), set(), set()),
}
"""Element -> required attributes, optional attributes, children. Source: the xUnit plugin of Jenkins, junit-10.xsd."""


def written(results: Results) -> ET.Element:
    """The document of a run, parsed."""
    return ET.fromstring(junit(results, build_report(results)).encode())


def failures(root: ET.Element) -> dict[str, str]:
    """Test -> message of its failure."""
    found = {}
    for test in root.iter("testcase"):
        failure = test.find("failure")
        if failure is not None:
            found[f"{test.get('classname')} {test.get('name')}"] = failure.get("message", "")
    return found


def one(contract: ModelContract, observation: ModelObservation) -> Results:
    """The run of one model."""
    return samples.results((contract,), RunObservation(environment=samples.ENVIRONMENT, models=(observation,)))


@pytest.mark.parametrize("run", ["red", "problem", "broken", "unchanged"])
def test_golden(run: str):
    """The document reads as its golden file."""
    text = junit(samples.RUNS[run](), build_report(samples.RUNS[run]()))
    assert text == golden(f"{run}.junit.xml", text)


@pytest.mark.parametrize("run", samples.RUNS)
def test_shape(run: str):
    """Every element has the attributes and children that the schema of CI servers allows, and those it wants."""
    for element in written(samples.RUNS[run]()).iter():
        required, optional, children = SHAPE[element.tag]
        assert required <= set(element.keys()) <= required | optional
        assert {child.tag for child in element} <= children


@pytest.mark.parametrize("run", samples.RUNS)
def test_it_is_red_where_the_verdict_is(run: str):
    """There is no failure and no error if the verdict is `verified`, and at least one otherwise."""
    results = samples.RUNS[run]()
    root = written(results)
    is_red = int(root.get("failures", 0)) + int(root.get("errors", 0)) > 0
    assert is_red == (results.verdict != "verified")


@pytest.mark.parametrize("run", samples.RUNS)
def test_the_counts_are_those_of_a_reader(run: str):
    """A reader that counts for itself finds the numbers that the document states."""
    results = samples.RUNS[run]()
    for suite in JUnitXml.fromstring(junit(results, build_report(results)).encode()):
        stated = (suite.tests, suite.failures, suite.errors, suite.skipped)
        suite.update_statistics()
        assert stated == (suite.tests, suite.failures, suite.errors, suite.skipped)


def test_each_control_input_is_a_test():
    """A suite per model, a test per target and control input; every control input over the tolerance fails."""
    found = failures(written(samples.red()))
    assert {name for name in found if name.startswith("glyph-head")} == {
        f"glyph-head.onnx {case}" for case in samples.ROUNDED
    }
    assert found["glyph-head.onnx halves-1@batch=8"] == (
        "glyph-head, onnx, output 'logits', case halves-1@batch=8: "
        "max |P-M| 3.0e-03 > 1.0e-05 + 1.0e-05 * 2.4 = 3.4e-05"
    )


def test_a_failure_tells_the_next_step():
    """The text of a failure has the measurement, the next step and a command to reproduce this very test."""
    root = written(samples.red())
    (text,) = (
        failure.text
        for test in root.iter("testcase")
        if (test.get("classname"), test.get("name")) == ("glyph-head.onnx", "halves-1@batch=8")
        for failure in test.iter("failure")
    )
    assert "\nnext (of the worst, halves-1@batch=16): What causes it is not known" in text
    assert text.endswith("run: export-gate run glyph-head --target onnx --case 'halves-1@batch=8'")


def test_a_death_fails_its_control_input():
    """The control input that killed the worker fails; those never reached are skipped."""
    root = written(samples.red())
    tests = [test for test in root.iter("testcase") if test.get("classname") == "detector.onnx"]
    assert [test.get("name") for test in tests if test.find("failure") is not None] == ["high-1@batch=16"]
    skipped = [skip.get("message") for test in tests for skip in test.iter("skipped")]
    assert skipped == ["not run"] * (len(samples.CASES) - 1)


def test_other_violations_are_tests_of_their_own():
    """A violation that belongs to no control input is a test named after its rule."""
    assert "sentence-encoder export-failed" in failures(written(samples.red()))


def test_a_model_that_could_not_be_checked_is_an_error():
    """Such a model is neither passed nor failed, but an error with the next step."""
    (error,) = written(samples.problem()).iter("error")
    assert error.get("type") == "could-not-be-checked"
    assert "next: Did you mean `glyphlab.model:make_model`?" in (error.text or "")


def test_waived_control_inputs_pass():
    """Waived control inputs pass and are mentioned in the suite's output; the others still fail."""
    waiver = Waiver(rule="value-mismatch", reason="ties", until="2099-01-01", case="halves-*")
    contract = samples.contract("glyph-head", targets=(make_target("onnx"),), waivers=(waiver,))
    results = one(contract, samples.model("glyph-head", (samples.wrong_target(),)))
    root = written(results)
    assert set(failures(root)) == {"glyph-head.onnx constant-1@batch=8", "glyph-head.onnx normal-1@batch=8"}
    assert "waived: value-mismatch: glyph-head, onnx" in "".join(out.text or "" for out in root.iter("system-out"))


def test_warnings_that_fail_the_check_fail_a_test():
    """With `--fail-on warning` a warning is a violation, and so a red test."""
    results = samples.red()
    raised = tuple(replace(f, severity="violation") if f.severity == "warning" else f for f in results.findings)
    assert "glyph-head.onnx guard-missing" in failures(written(replace(results, findings=raised)))


def test_other_outputs_and_failed_calls_fail():
    """A failed call and outputs of another structure are described in words."""
    cases = (
        CaseResult(case="normal-1@batch=2", structure=Structure(expected=("logits",), actual=("logits", "extra"))),
        CaseResult(case="halves-1@batch=2", failure=replace(samples.export_failure(), stage="run", type="OrtError")),
    )
    seen = samples.model("m", (samples.target("onnx", 0.0, cases=cases),), controls=samples.controls())
    found = failures(written(one(samples.contract("m", targets=(make_target("onnx"),)), seen)))
    assert found["m.onnx normal-1@batch=2"] == (
        "m, onnx, case normal-1@batch=2: expected outputs logits, got logits, extra"
    )
    assert found["m.onnx halves-1@batch=2"].startswith("m, onnx, case halves-1@batch=2: OrtError: Could not guard on")


def test_versions_are_properties():
    """Each suite has the versions, the digests and the evidence line."""
    root = written(samples.green())
    suite = root.find("testsuite")
    assert suite is not None
    found = {item.get("name"): item.get("value") for item in suite.iter("property")}
    assert (found["torch"], found["Python"], found["verdict"]) == ("2.13.0+cpu", "3.11.7", "verified")
    assert str(found["evidence"]).startswith("verified at 30 control inputs")


@pytest.mark.parametrize("run", samples.RUNS)
def test_hostile_strings_stay_text(run: str):
    """The document parses and has no additional element, whatever names, messages and traces are."""
    found, plain = written(hostile(samples.RUNS[run]())), written(samples.RUNS[run]())
    assert {element.tag for element in found.iter()} <= {element.tag for element in plain.iter()}


@settings(max_examples=40, deadline=None)
@given(text=st.text(st.characters(), min_size=1, max_size=60))
def test_any_text_comes_back(text: str):
    """Control characters are spelled out, because XML cannot hold them; all other text comes back unchanged."""
    finding = Finding(rule="train-mode", severity="violation", model="m", message=text, hint="Fix it.")
    results = replace(samples.green(), contracts=(samples.contract("m"),), findings=(finding,), verdict="violations")
    assert failures(written(results))["m train-mode"] == visible(text)
