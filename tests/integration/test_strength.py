"""`export-gate strength`: a control set catches planted faults, and a narrow one is told what it misses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness.gate import gate

NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, switch):
        super().__init__()
        torch.manual_seed(0)
        self.body = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8))
        self.head, self.switch = nn.Linear(8, 3), switch

    def forward(self, x):
        hidden = self.body(x)
        if self.switch:
            hidden = torch.where(x.mean(1, keepdim=True) > 0.25, hidden, hidden.clamp(-1, 1))
        return self.head(hidden).flatten()

def make(switch=True):
    return Net(switch).eval()
"""
CONFIG = """
version: 1
models:
  net:
    factory: net:make
    dims: {batch: {min: 1, max: 6}}
    inputs: {x: {dtype: float32, shape: [batch, 6], range: [-2, 2]}}
    outputs: {y: {}}
    targets: {onnx: {}}
  blind:
    factory: net:make
    kwargs: {switch: false}
    dims: {batch: {min: 1, max: 6}}
    inputs: {x: {dtype: float32, shape: [batch, 6], range: [-2, 2], draws: [zeros]}}
    outputs: {y: {}}
    controls: {affine-basis: never}
    targets: {onnx: {}}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both configs."""
    folder = tmp_path_factory.mktemp("strength")
    (folder / "export-gate.yml").write_text(CONFIG, encoding="utf-8")
    (folder / "net.py").write_text(NET, encoding="utf-8")
    return folder


@pytest.mark.slow(seconds=8)
def test_the_control_set_catches_what_a_random_search_does(project: Path):
    """At least 98.5% of two dozen faults of all kinds, and nothing is left behind."""
    done = gate(project, "strength", "net", "--mutants", "24", "--budget", "2m", "--fail-under", "98.5", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert sum(found["totals"].values()) == len(found["mutants"]) == 24
    assert found["totals"]["caught"] >= 15
    assert len({mutant["kind"] for mutant in found["mutants"]}) >= 6
    assert found["untried"] == found["planned"] - 24
    assert all(mutant["caught_by"] for mutant in found["mutants"] if mutant["outcome"] == "caught")
    assert not (project / ".export-gate").exists()


@pytest.mark.slow(seconds=8)
def test_survivors_are_listed_with_the_line_and_what_would_have_caught_them(project: Path):
    """Zeros alone say nothing of the first layer's weights."""
    done = gate(project, "strength", "blind", "--mutants", "40", "--budget", "2m", "--fail-under", "98.5")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "blind: less than 98.5% of the mutants were caught" in done.stderr
    lines = done.stdout.splitlines()
    at = lines.index("  cast: Gemm node_linear: body.0.weight: rounded to float16")
    assert lines[at + 1] == "      in body.0, net.py:13 `hidden = self.body(x)`"
    assert any(name in lines[at + 2] for name in ("normal (", "uniform (", "mosaic ("))
    assert any(line.startswith("Not in the control set: ") for line in lines)


def test_a_model_without_a_file_has_nothing_to_mutate(project: Path):
    """The message says what to add."""
    (project / "other.yml").write_text(CONFIG.replace("onnx: {}", "pt2: {}"), encoding="utf-8")
    done = gate(project, "strength", "net", "-c", "other.yml")
    assert done.returncode == 2
    assert "models.net.targets: expected an ONNX file among them, got pt2" in done.stderr
    assert gate(project, "strength", "net", "--budget", "soon").returncode == 2
