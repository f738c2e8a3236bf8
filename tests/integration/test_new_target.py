"""The recipe for a new target in CONTRIBUTING.md, followed in a copy of the package: one file and one line."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECIPE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
LAST = '    TargetKind(\n        name="aoti",'
MODEL = """
from torch import nn

def make():
    return nn.Sequential(nn.Linear(3, 3), nn.Softmax(-1)).eval()
"""
CONFIG = """
version: 1
models:
  m:
    factory: app:make
    dims: {batch: {min: 2, max: 4}}
    inputs: {input: {dtype: float32, shape: [batch, 3], range: [-1, 1]}}
    targets: {decomposed: {budget: {size: 1 MB}}}
"""


@pytest.mark.slow
def test_a_new_target_is_one_file_and_one_line(tmp_path: Path):
    """The config accepts its section; its artifact is made, loaded, verified and shown in a column of its own."""
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "templates", tmp_path / "templates")
    package = tmp_path / "src" / "export_gate"
    module = re.search(r"```python\n(# worker/targets/decomposed\.py\n.*?)```", RECIPE, re.DOTALL)
    line = re.search(r"`(TargetKind\(.*?\),)`", RECIPE)
    assert module is not None
    assert line is not None
    (package / "worker" / "targets" / "decomposed.py").write_text(module[1], encoding="utf-8")
    kinds = (package / "wall" / "targets.py").read_text(encoding="utf-8")
    assert kinds.count(LAST) == 1
    changed = kinds.replace(LAST, f"    {line[1]}\n{LAST}")
    (package / "wall" / "targets.py").write_text(changed, encoding="utf-8")
    (tmp_path / "app.py").write_text(MODEL, encoding="utf-8")
    (tmp_path / "export-gate.yml").write_text(CONFIG, encoding="utf-8")

    done = subprocess.run(
        [sys.executable, "-m", "export_gate.cli.main", "run", "--python", sys.executable],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "src")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads((tmp_path / ".export-gate" / "results.json").read_text(encoding="utf-8"))
    (target,) = results["run"]["models"][0]["targets"]
    assert target["target"] == "decomposed"
    assert target["artifact"]["path"].endswith("decomposed.pt2")
    assert len(target["cases"]) > 10
    assert re.search(r"^model +decomposed", done.stdout, re.MULTILINE)
