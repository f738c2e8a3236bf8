"""Planning a thousand models."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ENTRY = """
  m{number}:
    factory: models:make
    dims: {{batch: {{min: 1, max: 8}}}}
    inputs: {{input: {{dtype: float32, shape: [batch, 8], range: [0, 1]}}}}
"""


def planned(folder: Path, count: int) -> tuple[int, float, int]:
    """How many models the shards have, the CPU time in seconds, and the peak of memory in bytes."""
    config = folder / f"{count}.yml"
    config.write_text("version: 1\nmodels:" + "".join(ENTRY.format(number=number) for number in range(count)))
    command = [sys.executable, "-m", "export_gate.cli.start", "plan", "--config", str(config), "--shards", "20"]
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, env={**os.environ, "EXPORT_GATE_CACHE": str(folder / "cache")}
    )
    assert process.stdout is not None
    printed = process.stdout.read()
    _, process.returncode, usage = os.wait4(process.pid, 0)
    assert process.returncode == 0
    models = [name for leg in json.loads(printed)["include"] for name in leg["models"].split()]
    assert len(models) == len(set(models))
    return len(models), usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "wait4"), reason="no usage of a child")
def test_a_thousand_models_are_planned_within_a_second_and_in_flat_memory(tmp_path: Path):
    """Each model is in one shard. 0.7 s of CPU on a quiet machine; the bound leaves room for a busy one."""
    _, _, small = planned(tmp_path, 1)
    count, seconds, large = planned(tmp_path, 1000)
    assert count == 1000
    assert seconds < 2.5
    assert large < small + 20 * 2**20
