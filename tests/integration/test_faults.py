"""One run over models that crash, hang, flood and leave daemons: each is its own finding, the rest is verified."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

FAULTS = Path(__file__).parents[1] / "models" / "faults"
GATE = Path(sys.executable).with_name("export-gate")
EVERY_TARGET = "{onnx: {}, pt2: {}, exported-program: {}}"
ONE_TARGET = "{exported-program: {}}"
MARKER = "TORCH_TEST_MARKER"
"""An environment variable that project code may see: whatever the run leaves behind carries it."""

MODELS = {
    "first": ("healthy.py:make", EVERY_TARGET, "2m"),
    "segfault": ("in_forward.py:make_segfault", ONE_TARGET, "2m"),
    "exit": ("in_forward.py:make_exit", ONE_TARGET, "2m"),
    "sys-exit": ("in_forward.py:make_sys_exit", ONE_TARGET, "2m"),
    "kill": ("in_forward.py:make_kill", ONE_TARGET, "2m"),
    "hang": ("in_forward.py:make_hang", ONE_TARGET, "3s"),
    "out-of-memory": ("in_forward.py:make_out_of_memory", ONE_TARGET, "2m"),
    "recursion": ("in_forward.py:make_recursion", ONE_TARGET, "2m"),
    "overflow": ("in_forward.py:make_overflow", ONE_TARGET, "2m"),
    "unshowable": ("in_forward.py:make_unshowable", ONE_TARGET, "2m"),
    "loud": ("in_forward.py:make_loud", ONE_TARGET, "2m"),
    "junk": ("in_forward.py:make_junk", ONE_TARGET, "2m"),
    "daemon": ("in_forward.py:make_daemon", ONE_TARGET, "2m"),
    "segfault-in-onnx": ("in_target.py:make_segfault_in_onnx", EVERY_TARGET, "2m"),
    "hang-in-onnx": ("in_target.py:make_hang_in_onnx", EVERY_TARGET, "20s"),
    "unshowable-in-onnx": ("in_target.py:make_unshowable_in_onnx", EVERY_TARGET, "2m"),
    "abort-in-pt2": ("in_target.py:make_abort_in_pt2", EVERY_TARGET, "2m"),
    "last": ("healthy.py:make", EVERY_TARGET, "2m"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of the command line."""

    status: int
    output: str
    folder: Path
    results: dict[str, Any]
    left_behind: list[str]

    def model(self, name: str) -> dict[str, Any]:
        """What was observed of a model."""
        (found,) = [model for model in self.results["run"]["models"] if model["model"] == name]
        return found

    def violations(self, name: str) -> list[dict[str, Any]]:
        """Violations of a model."""
        return [f for f in self.results["findings"] if f["model"] == name and f["severity"] == "violation"]

    def compared(self, name: str) -> dict[str, int]:
        """Target -> control inputs at which outputs were compared."""
        return {t["target"]: sum(bool(c["outputs"]) for c in t["cases"]) for t in self.model(name)["targets"]}


def config_text() -> str:
    """All models under one contract."""
    models = [
        f"  {name}: {{factory: '{factory}', targets: {targets}, timeout: {timeout}, "
        "dims: {batch: {min: 1, max: 4}}, inputs: {x: {dtype: float32, shape: [batch, 2], range: [-1, 1]}}}"
        for name, (factory, targets, timeout) in MODELS.items()
    ]
    defaults = "defaults: {controls: {limit: 5, affine-basis: never}}"
    return "\n".join(["version: 1", f"pythonpath: ['{FAULTS}']", defaults, "models:", *models])


def processes_with(marker: str) -> list[str]:
    """Command lines of the processes that have the marker in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if marker.encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """All models in one run, two at a time."""
    folder = tmp_path_factory.mktemp("faults")
    for source in FAULTS.glob("*.py"):
        (folder / source.name).symlink_to(source)
    (folder / "export-gate.yml").write_text(config_text())
    marker = uuid.uuid4().hex
    environment = {**os.environ, MARKER: marker, "OMP_NUM_THREADS": "1"}
    command = [GATE, "run", "--jobs", "2", "--report-dir", folder / "report"]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    left_behind = processes_with(marker)
    results = json.loads((folder / "report" / "results.json").read_text())
    return Run(
        status=done.returncode,
        output=done.stdout + done.stderr,
        folder=folder / "report",
        results=results,
        left_behind=left_behind,
    )
