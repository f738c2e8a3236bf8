"""A model whose weights are larger than most machines have room for several times."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CONFIG = Path(__file__).parents[2] / "benchmarks" / "decoder" / "export-gate.yml"
NEEDED_BYTES = 8 * 2**30


def free_bytes() -> int:
    """Memory that programs can have without swapping; 0 where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), 0)


@pytest.mark.nightly
@pytest.mark.slow(seconds=120)
@pytest.mark.timeout(3600)
@pytest.mark.skipif(free_bytes() < NEEDED_BYTES, reason="needs 8 GB of free memory")
def test_a_decoder_of_355_million_parameters_is_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Its weights of 1.4 GB are in a file beside the graph; the peak is at most four and a half times as much."""
    command = [sys.executable, "-m", "export_gate.cli.start", "run", "--config", str(CONFIG), "--no-cache", "--quiet"]
    subprocess.run([*command, "--report-dir", str(tmp_path)], check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    (model,) = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))["run"]["models"]
    onnx = next(target["artifact"] for target in model["targets"] if target["target"] == "onnx")
    peak, weights = model["peak_memory_bytes"], model["parameters"] * 4
    with capsys.disabled():
        sys.stdout.write(f"\npeak {peak / 2**20:.0f} MiB, {peak / weights:.2f} times the weights\n")
    assert len(onnx["files"]) > 1
    assert peak < 4.5 * weights
