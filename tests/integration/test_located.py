"""A red run names the node, the line and the smallest input; the saved input shows the same violation again."""

from __future__ import annotations

import json
import re
import shlex
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness.gate import Done, gate

MODELS = """
import torch
from torch import nn


class Fixed(nn.Module):
    def forward(self, x):
        factor = 3.0 if torch.compiler.is_exporting() else 2.0
        return x * factor + 1


def make_fixed():
    return Fixed().eval()
"""
CONFIG = """
version: 1
defaults:
  controls: {limit: 8, affine-basis: never}
models:
  fixed:
    factory: models:make_fixed
    dims: {batch: {min: 2, max: 8}}
    inputs: {x: {dtype: float32, shape: [batch], range: [-2, 2]}}
    outputs: {y: {}}
    targets: {pt2: {}, onnx: {}}
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """One run over a model in which export fixes a number."""
    folder = tmp_path_factory.mktemp("located")
    (folder / "models.py").write_text(MODELS, encoding="utf-8")
    (folder / "export-gate.yml").write_text(CONFIG, encoding="utf-8")
    return folder, gate(folder, "run", "-q", "--save-case", "smallest.npz")


def _findings(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    results = json.loads((folder / ".export-gate" / "results.json").read_text(encoding="utf-8"))
    return {
        (found["model"], found["target"]): found for found in results["findings"] if found["severity"] == "violation"
    }


@pytest.mark.slow(60)
@pytest.mark.parametrize("target", ["pt2", "onnx"])
def test_each_red_target_names_its_node_and_line(ran: tuple[Path, Done], target: str):
    """The results name the node, with its line in the model's file."""
    folder, done = ran
    assert done.returncode == 1, done.stderr
    found = _findings(folder)["fixed", target]
    trace = found["trace"]

    assert (trace["guilty"]["operator"], trace["beside"], trace["origin"]) == ("aten.mul.Tensor", "eager", "introduced")
    assert (trace["mapped"], trace["unmapped"]) == (2, 0)
    assert found["source"]["text"] == "return x * factor + 1"
    assert Path(found["source"]["path"]).name == "models.py"


@pytest.mark.slow(60)
def test_all_formats_tell_node_line_and_input(ran: tuple[Path, Done]):
    """Terminal, Markdown, page, JUnit and SARIF all show node, line and input."""
    folder, done = ran
    assert re.search(r"models\.py:\d+: return x \* factor \+ 1", done.stdout)
    assert re.search(r"smallest failing input: x = \[[-\d., ]+\]: eager", done.stdout)
    report = folder / ".export-gate"
    assert "- **smallest failing input:** `x = " in (report / "report.md").read_text(encoding="utf-8")
    assert "Error along the graph" in (report / "report.html").read_text(encoding="utf-8")
    junit = gate(folder, "report", report / "results.json", "--format", "junit").stdout
    assert any("node: `mul`" in (failure.text or "") for failure in ET.fromstring(junit).iter("failure"))
    sarif = json.loads(gate(folder, "report", report / "results.json", "--format", "sarif").stdout)
    (mul,) = {r["properties"]["node"]["name"] for r in sarif["runs"][0]["results"] if "fixed" in r["message"]["text"]}
    assert mul == "mul"


@pytest.mark.slow(60)
def test_the_saved_input_shows_the_same_violation_again(ran: tuple[Path, Done]):
    """The command from the report shows the violation at the smallest input again; another kind of file is refused."""
    folder, done = ran
    (command,) = [line for line in done.stdout.splitlines() if "smallest.npz" in line]
    words = shlex.split(command.partition("run:")[2])
    with np.load(folder / "smallest.npz") as saved:
        assert saved["x"].shape[0] == 2
    model, target = words[2], words[4]
    before = _findings(folder)[model, target]
    again = gate(folder, *words[1:], "-q", "--report-dir", "again")
    assert again.returncode == 1, again.stderr
    results = json.loads((folder / "again" / "results.json").read_text(encoding="utf-8"))
    (found,) = [found for found in results["findings"] if found["severity"] == "violation"]

    assert (found["rule"], found["output"], found["case"]) == (before["rule"], before["output"], "smallest.npz")
    assert (found["cause"], found["owner"]) == (before["cause"], before["owner"])
    missing = gate(folder, "run", model, "--case", "nothing.npz")
    assert missing.returncode == 2
    assert "--case nothing.npz: expected a pattern of control inputs or an .npz file" in missing.stderr


@pytest.mark.slow(60)
def test_a_forced_kit_ends_with_the_smallest_input(ran: tuple[Path, Done], tmp_path: Path):
    """A replay elsewhere fails at it as well."""
    folder, _ = ran
    done = gate(folder, "kit", "fixed", "-q", "--force", "-o", tmp_path / "kit")
    assert done.returncode == 0, done.stderr
    kit = json.loads((tmp_path / "kit" / "kit.json").read_text(encoding="utf-8"))

    sets = kit["exports"][0]["data_sets"]
    assert sets[-1]["case"] == "onnx.smallest-y"
    replayed = gate(folder, "replay", tmp_path / "kit")
    assert replayed.returncode == 1
    assert f"0 of {len(sets)} data sets" in replayed.stdout


def test_a_case_is_not_saved_without_experiments(tmp_path: Path):
    """--save-case and --no-diagnosis contradict each other."""
    done = gate(tmp_path, "run", "--no-diagnosis", "--save-case", "a.npz")
    assert done.returncode == 2
    assert "--save-case needs the experiments that --no-diagnosis skips" in done.stderr
