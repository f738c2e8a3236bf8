"""A red run names the node, the line and the smallest input; the saved input shows the same violation again."""

from __future__ import annotations

import json
import re
import shlex
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from harness.gate import Done, gate
from onnx import numpy_helper

MODELS = """
import sys

import torch
from torch import nn

if "export_gate.worker.study.diagnosis" in sys.modules:  # a slow machine finds what a fast one finds
    sys.modules["export_gate.worker.study.allowance"].MOST_S = 600.0
    sys.modules["export_gate.worker.study.allowance"].LEAST_S = 600.0
    for name in ("LEAST_S", "LEAST_GIVEN_S"):
        setattr(sys.modules["export_gate.worker.study.diagnosis"], name, 600.0)
    sys.modules["export_gate.worker.study.shrinking"].LIMIT_S = 600.0


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.norm, self.last = nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 2)

    def forward(self, x):
        hidden = torch.tanh(self.first(x))
        return self.last(self.norm(hidden))


class Fixed(nn.Module):
    def forward(self, x):
        factor = 3.0 if torch.compiler.is_exporting() else 2.0
        return x * factor + 1


def make_net():
    return Net().eval()


def make_fixed():
    return Fixed().eval()
"""
CONFIG = """
version: 1
defaults:
  controls: {limit: 8, affine-basis: never}
models:
  edited:
    factory: models:make_net
    dims: {batch: {min: 2, max: 8}}
    inputs: {x: {dtype: float32, shape: [batch, 3], range: [-2, 2]}}
    outputs: {y: {}}
    targets: {onnx: {artifact: edited.onnx}}
  weights:
    factory: models:make_net
    dims: {batch: {min: 2, max: 8}}
    inputs: {x: {dtype: float32, shape: [batch, 3], range: [-2, 2]}}
    outputs: {y: {}}
    targets: {onnx: {artifact: weights.onnx}}
  fixed:
    factory: models:make_fixed
    dims: {batch: {min: 2, max: 8}}
    inputs: {x: {dtype: float32, shape: [batch], range: [-2, 2]}}
    outputs: {y: {}}
    targets: {pt2: {}, onnx: {}}
"""


def _write_files(folder: Path) -> None:
    """The network's file with another epsilon, and with another bias."""
    namespace: dict[str, Any] = {}
    exec(MODELS, namespace)
    batch = torch.export.Dim("batch", min=2, max=8)
    program = torch.export.export(namespace["make_net"](), (torch.ones(3, 3),), dynamic_shapes=({0: batch},))
    names = {"input_names": ["x"], "output_names": ["y"]}
    converted = torch.onnx.export(program, dynamo=True, opset_version=20, verbose=False, **names)
    assert converted is not None
    converted.save(folder / "edited.onnx")
    model = onnx.load(str(folder / "edited.onnx"))
    (norm,) = [node for node in model.graph.node if node.op_type == "LayerNormalization"]
    (epsilon,) = [attribute for attribute in norm.attribute if attribute.name == "epsilon"]
    (bias,) = [tensor for tensor in model.graph.initializer if tensor.name == "first.bias"]
    was, epsilon.f = epsilon.f, 0.3
    onnx.save(model, folder / "edited.onnx")
    epsilon.f = was
    bias.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(bias) + np.float32(0.5), bias.name))
    onnx.save(model, folder / "weights.onnx")


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """One run over files with an edited attribute and an edited weight, and over a number fixed at export."""
    folder = tmp_path_factory.mktemp("located")
    (folder / "models.py").write_text(MODELS, encoding="utf-8")
    (folder / "export-gate.yml").write_text(CONFIG, encoding="utf-8")
    _write_files(folder)
    return folder, gate(folder, "run", "-q", "--save-case", "smallest.npz")


def _findings(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    results = json.loads((folder / ".export-gate" / "results.json").read_text(encoding="utf-8"))
    return {
        (found["model"], found["target"]): found for found in results["findings"] if found["severity"] == "violation"
    }


@pytest.mark.slow(60)
@pytest.mark.parametrize(
    ("place", "operator", "line", "beside"),
    [
        (("edited", "onnx"), "aten.layer_norm.default", "return self.last(self.norm(hidden))", "program"),
        (("weights", "onnx"), "aten.linear.default", "hidden = torch.tanh(self.first(x))", "program"),
        (("fixed", "pt2"), "aten.mul.Tensor", "return x * factor + 1", "eager"),
        (("fixed", "onnx"), "aten.mul.Tensor", "return x * factor + 1", "eager"),
    ],
)
def test_each_red_target_names_its_node_and_line(
    ran: tuple[Path, Done], place: tuple[str, str], operator: str, line: str, beside: str
):
    """In the results, and with the line in the model's file."""
    folder, done = ran
    assert done.returncode == 1, done.stderr
    found = _findings(folder)[place]
    guilty = found["trace"]["guilty"]

    assert (guilty["operator"], found["source"]["text"], found["trace"]["beside"]) == (operator, line, beside)
    assert found["trace"]["origin"] == "introduced"
    assert Path(found["source"]["path"]).name == "models.py"
    assert guilty["max_abs_diff"] > 0.01
    assert found["trace"]["unmapped"] == 0


@pytest.mark.slow(60)
def test_all_formats_tell_node_line_and_input(ran: tuple[Path, Done]):
    """Terminal, Markdown, page, JUnit and SARIF."""
    folder, done = ran
    assert re.search(r"models\.py:\d+: return x \* factor \+ 1", done.stdout)
    assert re.search(r"fails at x = \[[-\d., ]+\]: eager", done.stdout)
    report = folder / ".export-gate"
    assert "- **fails at** `x = " in (report / "report.md").read_text(encoding="utf-8")
    assert "Error along the graph" in (report / "report.html").read_text(encoding="utf-8")
    junit = gate(folder, "report", report / "results.json", "--format", "junit").stdout
    assert any("node: `mul`" in (failure.text or "") for failure in ET.fromstring(junit).iter("failure"))
    sarif = json.loads(gate(folder, "report", report / "results.json", "--format", "sarif").stdout)
    (mul,) = {r["properties"]["node"]["name"] for r in sarif["runs"][0]["results"] if "fixed" in r["message"]["text"]}
    assert mul == "mul"


@pytest.mark.slow(60)
def test_the_saved_input_shows_the_same_violation_again(ran: tuple[Path, Done]):
    """By the command that the report prints, as small as it was found; another kind of file is refused."""
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
    """A replay elsewhere fails at it, too."""
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
    """The two options contradict each other."""
    done = gate(tmp_path, "run", "--no-diagnosis", "--save-case", "a.npz")
    assert done.returncode == 2
    assert "--save-case needs the experiments that --no-diagnosis skips" in done.stderr
