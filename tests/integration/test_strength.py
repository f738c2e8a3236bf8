"""`export-gate strength`: a narrow control set is told which planted faults it misses."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.gate import gate

NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.body = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8))
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        hidden = self.body(x)
        return self.head(hidden).flatten()

def make():
    return Net().eval()
"""
CONFIG = """
version: 1
models:
  blind:
    factory: net:make
    dims: {batch: {min: 1, max: 6}}
    inputs: {x: {dtype: float32, shape: [batch, 6], range: [-2, 2], draws: [zeros]}}
    outputs: {y: {}}
    controls: {affine-basis: never}
    targets: {onnx: {}}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model whose control inputs are all zeros."""
    folder = tmp_path_factory.mktemp("strength")
    (folder / "export-gate.yml").write_text(CONFIG, encoding="utf-8")
    (folder / "net.py").write_text(NET, encoding="utf-8")
    return folder


@pytest.mark.slow(seconds=8)
def test_survivors_are_listed_with_the_line_and_what_would_have_caught_them(project: Path):
    """A control set of zeros says nothing about the first layer's weights."""
    done = gate(project, "strength", "blind", "--mutants", "40", "--budget", "2m", "--fail-under", "98.5")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "blind: less than 98.5% of the mutants were caught" in done.stderr
    lines = done.stdout.splitlines()
    at = lines.index("  cast: Gemm node_linear: body.0.weight: rounded to float16")
    assert lines[at + 1] == "      in body.0, net.py:13 `hidden = self.body(x)`"
    assert any(name in lines[at + 2] for name in ("normal (", "uniform (", "mosaic ("))
    assert any(line.startswith("Not in the control set: ") for line in lines)
    assert not (project / ".export-gate").exists()


def test_a_model_without_a_file_has_nothing_to_mutate(project: Path):
    """The message says what to add."""
    (project / "other.yml").write_text(CONFIG.replace("onnx: {}", "pt2: {}"), encoding="utf-8")
    done = gate(project, "strength", "blind", "-c", "other.yml")
    assert done.returncode == 2
    assert "models.blind.targets: expected an ONNX file among them, got pt2" in done.stderr
    assert gate(project, "strength", "blind", "--budget", "soon").returncode == 2
