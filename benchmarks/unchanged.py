"""What the cache saves, on ten small models in a repository of their own: nothing changed, and one of ten changed.

Goals: with nothing changed a pre-push hook takes at most 0.25 s of CPU, and three times `python -c pass` and hashing;
with one of ten changed a run takes at most as long as that model's own run, and 0.3 s. Runs alternate, and figures are
medians.

The hook takes about eleven times `python -c pass`. Of 0.16 s on a quiet machine (2 cores, Python 3.11), Python's start
is 0.015 s, the imports of the standard library 0.065 s (dataclasses with inspect, pathlib, subprocess, json), those of
the gate 0.02 s, ten calls of git 0.03 s, and reading and hashing 0.03 s.

A model that is recalled costs 0.03 to 0.04 s of a run, so that nine take 0.25 to 0.34 s: a quarter is reading its
observation, a fifth hashing its files and judging whether it is still green, an eighth judging it once more beside the
others, and four tenths are its rows and pictures in the comment, the page and results.json.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

GATE = str(Path(sys.executable).with_name("export-gate"))
COUNT = 10
MODEL = """
from common import layer


def make():
    return layer({number})
"""
COMMON = """
import torch


def layer(size):
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, size + 1)).eval()
"""
ENTRY = """
  m{number}:
    factory: m{number}:make
    dims: {{batch: {{min: 1, max: 8}}}}
    inputs: {{input: {{dtype: float32, shape: [batch, 8], range: [0, 1]}}}}
"""
AUTHOR = ("-c", "user.name=bench", "-c", "user.email=bench@example.invalid")


def entry(number: int) -> str:
    """A model's lines in the config."""
    return ENTRY.format(number=number)


def cost(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> tuple[float, float]:
    """Seconds of wall time and of CPU, with those of all processes that the command starts."""
    started = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}")
    return time.perf_counter() - started, usage.ru_utime + usage.ru_stime


def project(folder: Path) -> None:
    """A repository with ten models that share a source."""
    models = "".join(map(entry, range(COUNT)))
    (folder / "export-gate.yml").write_text(f"version: 1\npython: {sys.executable}\nmodels:{models}")
    (folder / "common.py").write_text(COMMON)
    (folder / ".gitignore").write_text("__pycache__/\n")
    for number in range(COUNT):
        (folder / f"m{number}.py").write_text(MODEL.format(number=number))
    for command in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "models"]):
        subprocess.run(["git", *AUTHOR, *command], cwd=folder, check=True)


def report(runs: int) -> None:
    """Print both figures beside what they are compared with."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "project"
        folder.mkdir()
        project(folder)
        plain = {**os.environ, "OMP_NUM_THREADS": "1", "EXPORT_GATE_CACHE": f"{scratch}/cache"}
        for name in ("EXPORT_GATE_RUN_NO_CACHE", "PYTHONDONTWRITEBYTECODE"):
            plain.pop(name, None)
        hook = {**plain, "PRE_COMMIT": "1", "PRE_COMMIT_FROM_REF": "HEAD", "PRE_COMMIT_TO_REF": "HEAD"}
        python = [sys.executable, "-c", "pass"]
        run = [GATE, "run", "-j", "1"]
        cold = cost(run, folder, hook)
        pairs = [(cost(run, folder, hook)[1], cost(python, folder, plain)[1]) for _ in range(3 * runs)]
        mine, other = (statistics.median(pair[side] for pair in pairs) for side in (0, 1))
        ratio = statistics.median(a / b for a, b in pairs)
        print(
            f"nothing changed    cpu {mine:.2f} s (goal 0.25), {ratio:.1f}x `python -c pass` ({other:.3f} s; "
            "goal 3x and hashing, a fifth of it); "
            f"{COUNT} models cold: cpu {cold[1]:.1f} s",
            flush=True,
        )
        changes = []
        for number in range(runs):
            (folder / "m3.py").write_text(MODEL.format(number=COUNT + number))
            one = cost(run, folder, plain)
            alone = cost([*run, "m3", "--no-cache"], folder, plain)
            changes.append((one, alone))
        for side, unit in enumerate(("wall", "cpu")):
            more = statistics.median(one[side] - alone[side] for one, alone in changes)
            base = statistics.median(alone[side] for _, alone in changes)
            print(f"one of {COUNT} changed   {unit} {more:+.2f} s beside its own run of {base:.1f} s (goal +0.30)")
        # Less noisy than the difference above: no model runs, and nine are recalled beside one.
        cost(run, folder, plain)
        cost([*run, "m3"], folder, plain)
        recalled = [cost(run, folder, plain)[1] - cost([*run, "m3"], folder, plain)[1] for _ in range(3 * runs)]
        print(
            f"nine recalled      cpu {statistics.median(recalled):+.2f} s beside one recalled (goal +0.30)", flush=True
        )


if __name__ == "__main__":
    report(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
