"""A change cannot lower `fail-on` unnoticed: the base's value decides as well, and the change is what it fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness.gate import gate
from harness.repositories import git

NET = """
from torch import nn

def make():
    return nn.Linear(2, 2).eval()
"""
CONFIG = """
version: 1
fail-on: warning
models:
  line:
    factory: net:make
    inputs: {input: {dtype: float32, shape: [3, 2], range: [0, 1]}}
    targets: {exported-program: {}}
"""


@pytest.mark.slow(seconds=10)
def test_base_decides_what_fails(tmp_path: Path):
    """Removing `fail-on: warning` is a warning, which the base makes a violation; once merged, it is the base."""
    config = tmp_path / "export-gate.yml"
    config.write_text(CONFIG)
    (tmp_path / "net.py").write_text(NET)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message=base")
    config.write_text(CONFIG.replace("fail-on: warning\n", ""))

    done = gate(tmp_path, "run", "-q", "--base", "HEAD")
    assert (done.returncode, "fail-on warning -> violation" in done.stdout) == (1, True), done.stdout
    results = tmp_path / ".export-gate" / "results.json"
    assert json.loads(results.read_text())["fail_on"] == "warning"
    assert gate(tmp_path, "report", results).returncode == 1
    assert gate(tmp_path, "run", "-q").returncode == 0
