"""`export-gate calibrate` measures rounding, and the tolerance that it suggests is one that holds and still tells."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from harness.gate import gate

NET = """
import torch
from torch import nn

def make():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4)).eval()

def other():
    net = make()
    net[2].eps *= 1.5
    net[2].weight.data *= 1.0001
    return net
"""
CONFIG = """
version: 1
models:
  net:
    factory: net:make
    dims: {batch: {min: 1, max: 4}}
    inputs: {input: {dtype: float32, shape: [batch, 8], range: [-2, 2]}}
    outputs: {y: {}}
    targets: {exported-program: {}, onnx: {}}
"""


@pytest.mark.slow(seconds=20)
def test_the_suggested_tolerance_holds_and_still_tells(tmp_path: Path):
    """With the tolerance in the config the model is green, and an ONNX file of nearly the same model is red."""
    config = tmp_path / "export-gate.yml"
    config.write_text(CONFIG, encoding="utf-8")
    (tmp_path / "net.py").write_text(NET, encoding="utf-8")

    done = gate(tmp_path, "calibrate", "net")

    assert done.returncode == 0, done.stderr
    header, program, onnx, *_ = done.stdout.splitlines()
    assert header.split("  ")[0] == "target"
    assert re.fullmatch(r"exported-program +y +exact +any", program)
    suggested = re.search(r"\{atol: (\S+), rtol: (\S+)\}$", onnx)
    assert suggested, onnx
    assert float(suggested[1]) == float(suggested[2]) < 1e-5
    assert not (tmp_path / ".export-gate").exists()

    written = CONFIG + f"    tolerance: {suggested[0]}\n"
    config.write_text(written, encoding="utf-8")
    green = gate(tmp_path, "run", "-q")
    assert green.returncode == 0, green.stdout
    file = tmp_path / ".export-gate" / "artifacts" / "net" / "model.onnx"
    (tmp_path / "dist.onnx").write_bytes(file.read_bytes())
    stale = written.replace("net:make", "net:other").replace("onnx: {}", "onnx: {artifact: dist.onnx}")
    config.write_text(stale, encoding="utf-8")
    assert gate(tmp_path, "run", "-q").returncode == 1
