"""The recipe for a new rule in CONTRIBUTING.md, followed in a copy of the package: one file and one line."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
RECIPE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
USE = """
import json, sys
from dataclasses import replace

from report_samples import ENVIRONMENT, all_fine, contract, model, results
from export_gate.outcome.judging import judged
from export_gate.report.junit import junit
from export_gate.report.render import render
from export_gate.report.sarif import sarif
from export_gate.wall.contract import Waiver
from export_gate.wall.observation import RunObservation

waivers = (Waiver(rule="large-model", reason="known", until="2999-12-31"),) if sys.argv[1] == "waived" else ()
run = RunObservation(environment=ENVIRONMENT, models=(replace(model("m", all_fine()), weights_bytes=2_000_000_000),))
outcome = judged(replace(results((contract("m", waivers=waivers),), run), findings=()))
print(json.dumps({
    "verdict": outcome.judgement.verdict,
    "states": [[f"{s.stage}={s.state}" for s in cell.ladders[0].steps] for cell in outcome.report.rows[0].cells],
    "sarif": [each["ruleId"] for each in json.loads(sarif(outcome.results, outcome.report))["runs"][0]["results"]],
    "junit": junit(outcome.results, outcome.report),
    "terminal": render(outcome.report, "terminal"),
}))
"""
CONFIG = """
version: 1
models:
  m:
    factory: app:make
    inputs: {x: {dtype: float32, shape: [2]}}
    targets: {onnx: {}}
    waivers: [{rule: large-model, reason: known, until: {until}}]
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package with the recipe's file and line, and nothing else, added."""
    home = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "src", home / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "templates", home / "templates")
    found = re.search(r"```python\n(# rules/large_model\.py\n.*?)```", RECIPE, re.DOTALL)
    assert found is not None
    rules = home / "src" / "export_gate" / "rules"
    (rules / "large_model.py").write_text(found[1], encoding="utf-8")
    names = (rules / "__init__.py").read_text(encoding="utf-8")
    assert names.count('        "range_undeclared",\n') == 1
    changed = names.replace('        "range_undeclared",\n', '        "range_undeclared",\n        "large_model",\n')
    (rules / "__init__.py").write_text(changed, encoding="utf-8")
    return home


def python(copy: Path, *arguments: str) -> str:
    """What an interpreter that sees the copy prints."""
    samples = ROOT / "tests" / "unit" / "report"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(copy / "src"), str(samples)))}
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, cwd=copy, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_new_rule_is_one_file_and_one_line(copy: Path):
    """It is judged, fails its rung of the ladder, and appears in SARIF, JUnit and the terminal's report."""
    seen = json.loads(python(copy, "-c", USE, "open"))

    assert seen["verdict"] == "violations"
    assert all("eager=failed" in steps for steps in seen["states"])
    assert seen["sarif"] == ["large-model"]
    assert 'failure type="large-model"' in seen["junit"]
    assert "the weights take 2000000000 bytes" in " ".join(seen["terminal"].split())


@pytest.mark.slow
def test_a_new_rule_can_be_waived(copy: Path):
    """The config accepts a waiver of it, and the judge turns its violation into a note."""
    soon = (datetime.now(timezone.utc) + timedelta(days=30)).date().isoformat()
    (copy / "export-gate.yml").write_text(CONFIG.replace("{until}", soon), encoding="utf-8")

    assert json.loads(python(copy, "-c", USE, "waived"))["verdict"] == "verified"
    assert python(copy, "-m", "export_gate.cli.main", "validate") == "export-gate.yml: valid, 1 model\n"
    assert '"large-model"' in python(copy, "-m", "export_gate.cli.main", "schema")


@pytest.mark.slow
def test_a_new_rule_is_listed(copy: Path):
    """`export-gate rules` shows its summary."""
    listed = python(copy, "-m", "export_gate.cli.main", "rules").splitlines()

    assert [line.split() for line in listed if line.startswith("large-model")] == [
        ["large-model", "violation", "The", "weights", "are", "too", "large", "to", "ship."]
    ]
