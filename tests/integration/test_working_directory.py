"""Where the gate is started has no effect: project code finds its files, and printed commands find the config."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness.gate import gate, pasted

pytestmark = pytest.mark.slow

MODELS = """
import os
import numpy as np
import torch

AT_IMPORT = float(open("assets/scale.txt").read())

class Net(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x, pair):
        return {"y": self.scale * x + pair["a"]}

def make():
    assert os.environ["PWD"] == os.getcwd()
    os.chdir("assets")  # the next call starts in the config's folder again
    return Net(float(open("scale.txt").read())).eval()

def draw(shape, rng):
    return np.full(shape, float(open("assets/scale.txt").read()), np.float32)

def cases():
    scale = float(open("assets/scale.txt").read())
    return {"own": (torch.full((2, 2), scale), {"a": torch.zeros(2, 2)})}

def build(parts):
    return dict(parts)
"""
CONFIG = """
version: 1
models:
  net:
    factory: models.py:make
    dims: {batch: {min: 2, max: 4}}
    inputs:
      x: {dtype: float32, shape: [batch, 2], make: "models.py:draw"}
      pair: {build: "models.py:build", dict: {a: {dtype: float32, shape: [batch, 2], range: [-1, 1]}}}
    controls: {function: "models.py:cases", data: [{path: assets/data.npz}], limit: 6}
    targets: {exported-program: {}}
    outputs: {y: {dtype: float64}}
"""
STARTS: dict[str, Callable[[Path], tuple[Path, str]]] = {
    "the root": lambda project: (Path("/"), str(project.relative_to("/") / "gate.yml")),
    "the root, by an absolute path": lambda project: (Path("/"), str(project / "gate.yml")),
    "a sibling": lambda project: (project.parent / "sibling", "../a project/gate.yml"),
    "a subfolder": lambda project: (project / "assets", "../gate.yml"),
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A config whose code reads files by paths from its folder, and a contract that eager does not keep."""
    folder = tmp_path / "a project"
    for each in (folder / "assets", tmp_path / "sibling"):
        each.mkdir(parents=True)
    (folder / "models.py").write_text(MODELS, encoding="utf-8")
    (folder / "gate.yml").write_text(CONFIG, encoding="utf-8")
    (folder / "assets" / "scale.txt").write_text("2.0", encoding="utf-8")
    rows = np.ones((3, 2), np.float32)
    np.savez(folder / "assets" / "data.npz", **{"x": rows, "pair.a": rows})
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("start", STARTS)
def test_any_folder_will_do(project: Path, start: str):
    """The factory, `make`, `build`, the function and data are found, and the printed command works in that folder."""
    folder, config = STARTS[start](project)
    done = gate(folder, "run", "-c", config, "--python", sys.executable, "-q")
    assert done.returncode == 1, done.stdout + done.stderr
    first = _broken(project)
    assert {"data", "function", "generated"} <= _groups(project)

    (command,) = set(re.findall(r"^  run:  (export-gate run .*)$", done.stdout, re.MULTILINE))
    assert f"--python {sys.executable}" in command
    again = pasted(folder, command)
    assert again.returncode == 1, again.stdout + again.stderr
    assert _broken(project) == first


@pytest.mark.slow
def test_hints_name_the_config_that_was_named(project: Path):
    """A command in a hint can be pasted too: it finds the same config."""
    results = project / ".export-gate" / "results.json"
    gate(project.parent, "run", "-c", "a project/gate.yml", "--python", sys.executable, "-q")
    (project / "gate.yml").write_text(f"{CONFIG}# changed\n", encoding="utf-8")
    done = gate(project.parent, "lock", results, "-c", "a project/gate.yml")
    assert "Run `export-gate run --config 'a project/gate.yml'` again, then lock." in done.stderr


def _broken(project: Path) -> Any:
    results = json.loads((project / ".export-gate" / "results.json").read_text(encoding="utf-8"))
    (model,) = results["run"]["models"]
    assert model.get("problem") is None, model["problem"]
    (finding,) = [each for each in results["findings"] if each["severity"] == "violation"]
    assert finding["rule"] == "contract-broken"
    return finding["case"], finding["message"]


def _groups(project: Path) -> set[str]:
    results = json.loads((project / ".export-gate" / "results.json").read_text(encoding="utf-8"))
    return {member["group"] for member in results["run"]["models"][0]["controls"]["inputs"]}
