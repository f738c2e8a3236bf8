"""The command below a violation, run in a shell as it stands, shows the same violation again: value and case."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from harness.gate import gate, pasted
from onnx import TensorProto, helper, numpy_helper

MODELS = """
import torch

def make():
    class Double(torch.nn.Module):
        def forward(self, x):
            return {"y": 2 * x}
    return Double().eval()

def controls():
    return {
        "smaller": (torch.full((2, 2), 3.0),),
        "it's [a] *, $HOME? `x` \\"q\\"; ünï\\n": (torch.full((3, 2), 7.0),),
    }
"""
CONFIG = """
version: 1
defaults:
  dims: {batch: {min: 2, max: 4, separate: [3]}}
  inputs: {x: {dtype: float32, shape: [batch, 2], range: [-9, 9], draws: [zeros]}}
  tolerance: {atol: 1e-3, rtol: 0}
  targets: {onnx: {artifact: dist/wrong.onnx}}
models:
  golden:
    factory: models:make
    controls: {affine-basis: never, golden: [{path: golden.npz}]}
  data:
    factory: models:make
    controls: {affine-basis: never, data: [{path: "data [1].npz"}]}
  function:
    factory: models:make
    controls: {affine-basis: never, function: "models:controls"}
  affine:
    factory: models:make
    controls: {affine-basis: always}
  wrong-golden:
    factory: models:make
    controls: {affine-basis: never, golden: [{path: wrong.npz}]}
    targets: {exported-program: {}}
"""
CASES = {
    "golden": ("value-mismatch", "golden.golden-1@batch=4"),
    "data": ("value-mismatch", "data.data-1"),
    "function": ("value-mismatch", "function.it-s-a-HOME-x-q-n-@batch=3"),
    "affine": ("value-mismatch", "basis-1@batch="),
    "wrong-golden": ("golden-mismatch", "golden.wrong-1@batch=2"),
}
"""Model -> rule, and how the case's name begins."""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models whose ONNX file is wrong by a factor, which only the inputs of one kind each show."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "models.py").write_text(MODELS, encoding="utf-8")
    defaults = re.search(r"defaults:\n((?:  .*\n)+)", CONFIG)
    assert defaults
    config = CONFIG.replace(defaults[0], "defaults:\n  tolerance: {atol: 1e-3, rtol: 0}\n")
    shared = "".join(f"  {line}\n" for line in defaults[1].splitlines() if "tolerance" not in line)
    for name in CASES:
        own = shared if name != "wrong-golden" else "".join(shared.splitlines(keepends=True)[:-1])
        config = config.replace(f"  {name}:\n    factory: models:make\n", f"  {name}:\n    factory: models:make\n{own}")
    (folder / "gate.yml").write_text(config, encoding="utf-8")
    x = np.float32([[1, 2], [3, 4], [5, 6], [7, 8]])
    np.savez(folder / "golden.npz", x=x, y=2 * x)
    np.savez(folder / "data [1].npz", x=x)
    np.savez(folder / "wrong.npz", x=x[:2], y=2.5 * x[:2])
    (folder / "dist").mkdir()
    factor = numpy_helper.from_array(np.float32(2.01), "factor")
    given, returned = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 2]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Mul", ["x", "factor"], ["y"])], "g", [given], [returned], [factor])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.save(model, folder / "dist" / "wrong.onnx")
    return folder


def violations(folder: Path) -> dict[str, dict[str, Any]]:
    """Model -> its one violation, as results.json has it."""
    results = json.loads((folder / ".export-gate" / "results.json").read_text(encoding="utf-8"))
    found = [finding for finding in results["findings"] if finding["severity"] == "violation"]
    assert len({finding["model"] for finding in found}) == len(found)
    return {finding["model"]: finding for finding in found}


@pytest.fixture(scope="module")
def first(project: Path) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """The violations of the whole run, and the command below each."""
    done = gate(project, "run", "-c", "gate.yml", "-q")
    assert done.returncode == 1, done.stdout + done.stderr
    commands = re.findall(r"^  run:  (export-gate run --config gate\.yml (\S+) .*)$", done.stdout, re.MULTILINE)
    return violations(project), {model: command for command, model in commands}


@pytest.mark.slow
def test_each_kind_of_input_is_the_worst_of_its_model(first: tuple[dict[str, dict[str, Any]], dict[str, str]]):
    """Golden, data, function and affine inputs are all named, and each violation has a command."""
    found, commands = first
    assert found.keys() == commands.keys() == CASES.keys()
    for model, (rule, case) in CASES.items():
        assert found[model]["rule"] == rule
        assert found[model]["case"].startswith(case)


@pytest.mark.slow
@pytest.mark.parametrize("model", CASES)
def test_the_command_shows_the_same_again(
    project: Path, first: tuple[dict[str, dict[str, Any]], dict[str, str]], model: str
):
    """As a shell reads it, the command runs the same model, target and case with the same numbers, and nothing else."""
    found, commands = first
    done = pasted(project, commands[model])
    assert done.returncode == 1, done.stdout + done.stderr
    again = violations(project)
    assert again.keys() == {model}
    same = ("rule", "target", "output", "case", "measured", "allowed", "message")
    assert {name: again[model][name] for name in same} == {name: found[model][name] for name in same}
    results = json.loads((project / ".export-gate" / "results.json").read_text(encoding="utf-8"))
    assert [case["name"] for case in results["run"]["models"][0]["controls"]["inputs"]] == [found[model]["case"]]
