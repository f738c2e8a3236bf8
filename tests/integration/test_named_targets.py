"""Several targets of one kind: each file and export of a model has a name, a column and a verdict of its own."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from harness.gate import Done, gate
from onnx import TensorProto, helper, numpy_helper

MODELS = """
import torch
from torch import nn

class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = nn.Parameter(torch.tensor([3.0]))

    def forward(self, x):
        return {"y": torch.tanh(x) * self.factor}

def make():
    return Scaled().eval()
"""
CONFIG = """
version: 1
models:
  scaled:
    factory: models:make
    dims: {batch: {min: 2, max: 6, separate: [1]}}
    inputs: {x: {dtype: float32, shape: [batch, 2], range: [-2, 2]}}
    controls: {limit: 8, affine-basis: never}
    targets:
      program: {kind: exported-program}
      saved: {kind: pt2, decompose: true}
      pt2: {}
      old: {kind: onnx, opset: 17}
      onnx: {}
      rough: {kind: onnx, artifact: dist/rough.onnx, tolerance: {atol: 1e-2, rtol: 1e-2}}
      stale: {kind: onnx, artifact: dist/stale.onnx}
"""
NAMES = ["program", "saved", "pt2", "old", "onnx", "rough", "stale"]


def write_file(path: Path, factor: float) -> None:
    """A graph that scales the hyperbolic tangent."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 2]) for name in "xy")
    nodes = [helper.make_node("Tanh", ["x"], ["t"]), helper.make_node("Mul", ["t", "factor"], ["y"])]
    graph = helper.make_graph(nodes, "g", [x], [y], [numpy_helper.from_array(np.float32([factor]), "factor")])
    path.parent.mkdir(exist_ok=True)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with seven targets of three kinds; one file was made from other weights."""
    folder = tmp_path_factory.mktemp("named")
    (folder / "models.py").write_text(MODELS, encoding="utf-8")
    (folder / "export-gate.yml").write_text(CONFIG, encoding="utf-8")
    write_file(folder / "dist" / "rough.onnx", 3.001)
    write_file(folder / "dist" / "stale.onnx", 2.5)
    return folder


@pytest.fixture(scope="module")
def done(project: Path) -> Done:
    """All targets in one run."""
    return gate(project, "run", "-q", "--no-diagnosis")


def results(folder: Path) -> dict[str, Any]:
    """What the run recorded."""
    found: dict[str, Any] = json.loads((folder / ".export-gate" / "results.json").read_text(encoding="utf-8"))
    return found


def violations(folder: Path) -> list[tuple[str, str | None]]:
    """Rules and targets."""
    return [(f["rule"], f["target"]) for f in results(folder)["findings"] if f["severity"] == "violation"]


@pytest.mark.slow
def test_each_target_has_its_verdict(project: Path, done: Done):
    """Of seven targets only the file with other weights differs; a wider tolerance applies to its own target alone."""
    assert (done.returncode, done.stderr) == (1, ""), done.stdout
    assert set(violations(project)) == {("value-mismatch", "stale")}
    seen = {
        (target["target"], bool(target["separate"])): target
        for target in results(project)["run"]["models"][0]["targets"]
    }
    assert set(seen) == {(name, separate) for name in NAMES for separate in (False, True)}
    assert all(target["cases"] for target in seen.values())
    assert seen["old", False]["facts"]["opset"].startswith("ai.onnx 17")
    assert seen["onnx", False]["facts"]["opset"].startswith("ai.onnx 20")
    assert seen["saved", False]["facts"]["decomposed"] == "yes"
    assert seen["pt2", False]["facts"]["decomposed"] == "no"
    (row,) = [line for line in done.stdout.splitlines() if line.startswith("model ")]
    assert row.split() == ["model", *NAMES]


@pytest.mark.slow
def test_each_target_has_a_file(project: Path, done: Done):
    """The name is part of the file's name, unless it is that of the kind; two targets never share one."""
    assert done.returncode == 1
    artifacts = project / ".export-gate" / "artifacts" / "scaled"
    names = {"model-old.onnx", "model-saved.pt2", "model.onnx", "model.pt2"}
    for folder in (artifacts, artifacts / "batch=1"):
        assert {path.name for path in folder.iterdir() if path.is_file()} - {"manifest.json"} == names
    manifest = json.loads((artifacts / "manifest.json").read_text(encoding="utf-8"))
    assert {each["target"] for each in manifest["artifacts"]} == set(NAMES) - {"program"}
    files = [each["path"] for each in manifest["artifacts"]]
    assert len(set(files) - {"dist/rough.onnx", "dist/stale.onnx"}) == 8


@pytest.mark.slow
def test_every_format_names_the_target(project: Path, done: Done):
    """SARIF and JUnit say which of several files of one kind is wrong."""
    assert done.returncode == 1
    path = project / ".export-gate" / "results.json"
    sarif = json.loads(gate(project, "report", path, "--format", "sarif").stdout)
    wrong = [r for r in sarif["runs"][0]["results"] if r["level"] == "error"]
    assert {r["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] for r in wrong} == {"scaled/stale/y"}
    junit = ET.fromstring(gate(project, "report", path, "--format", "junit").stdout)
    groups = {case.get("classname") for case in junit.iter("testcase")}
    assert groups == {f"scaled.{name}" for name in NAMES}
    assert {case.get("classname") for case in junit.iter("testcase") if case.findall("failure")} == {"scaled.stale"}


@pytest.mark.slow
def test_targets_are_selected_and_skipped_by_name(project: Path):
    """`--target` and `--skip-target` take names; for a wrong one, the message suggests the nearest."""
    assert gate(project, "run", "-q", "--target", "rough", "--report-dir", "one").returncode == 0
    assert (project / "one" / "results.json").is_file()
    skipped = gate(
        project, "run", "-q", *(f"--skip-target={name}" for name in NAMES if name != "rough"), "--report-dir", "two"
    )
    assert skipped.returncode == 0, skipped.stdout + skipped.stderr
    wrong = gate(project, "run", "-q", "--skip-target", "stal")
    assert (wrong.returncode, wrong.stderr) == (
        2,
        "export-gate.yml: no model has the target 'stal' to skip; did you mean 'stale'?\n",
    )


@pytest.mark.slow
def test_a_waiver_and_the_lock_are_by_name(tmp_path: Path):
    """A waiver of one file does not cover another; the lock has a line for each, with its kind."""
    (tmp_path / "models.py").write_text(MODELS, encoding="utf-8")
    config = CONFIG.replace(", separate: [1]", "").replace("limit: 8", "limit: 3")
    write_file(tmp_path / "dist" / "rough.onnx", 2.5)
    write_file(tmp_path / "dist" / "stale.onnx", 2.5)
    waivers = "".join(
        f"    - {{rule: value-mismatch, target: {name}, reason: on its way out, until: 2027-01-31}}\n"
        for name in ("stale", "rough")
    )
    one, _, _ = waivers.partition("\n")
    (tmp_path / "export-gate.yml").write_text(f"{config}    waivers:\n{one}\n", encoding="utf-8")
    assert gate(tmp_path, "run", "-q", "--no-diagnosis", "--target", "rough", "--target", "stale").returncode == 1
    assert set(violations(tmp_path)) == {("value-mismatch", "rough")}

    (tmp_path / "export-gate.yml").write_text(f"{config}    waivers:\n{waivers}", encoding="utf-8")
    assert gate(tmp_path, "run", "-q", "--no-diagnosis").returncode == 0
    assert gate(tmp_path, "lock", tmp_path / ".export-gate" / "results.json").returncode == 0
    locked = json.loads((tmp_path / "export-gate.lock").read_text(encoding="utf-8"))["models"]["scaled"]["targets"]
    assert {name: target.get("kind") for name, target in locked.items()} == {
        "program": "exported-program", "saved": "pt2", "pt2": None, "old": "onnx", "onnx": None, "rough": "onnx",
        "stale": "onnx",
    }  # fmt: skip
    assert locked["old"]["opsets"]["ai.onnx"] == 17


@pytest.mark.slow
def test_a_kit_is_of_one_of_the_files(project: Path):
    """`kit --target` chooses among the ONNX files; replay judges it within that target's tolerance."""
    made = gate(project, "kit", "scaled", "-q", "--target", "old", "--target", "saved", "-o", "kit")
    assert (made.returncode, made.stderr) == (0, ""), made.stdout
    kit = json.loads((project / "kit" / "kit.json").read_text(encoding="utf-8"))
    assert kit["target"] == "old"
    assert {path.name for path in (project / "kit").iterdir() if path.is_file()} == {
        "kit.json", "model.onnx", "model-saved.pt2",
    }  # fmt: skip
    assert [o.version for o in onnx.load(str(project / "kit" / "model.onnx")).opset_import if not o.domain] == [17]
    assert gate(project, "replay", "kit").returncode == 0

    two = gate(project, "kit", "scaled", "-q", "--target", "old", "--target", "onnx")
    assert (two.returncode, two.stderr) == (
        2,
        "export-gate.yml: old and onnx are ONNX files, expected one for a kit\nwrite a kit for each\n",
    )
    other = gate(project, "kit", "scaled", "-q", "--target", "program")
    assert (other.returncode, other.stderr) == (
        2,
        "export-gate.yml: program is of kind exported-program; a kit has files of kind pt2 or onnx\n",
    )
