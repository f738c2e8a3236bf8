"""The gate beside hand-written scripts that do the same exports, loads and comparisons at the same control inputs.

Runs alternate, so that a busy machine slows both alike; figures are medians. Goals: one model at most 1.10 of the
script's wall time, the three examples in one run at most 0.6 of three scripts, peak memory at most 1.15, `validate`
at most 0.25 s and `--help` at most 0.15 s of CPU. `unchanged.py` has the figures of the cache.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import unchanged

ROOT = Path(__file__).parents[1]
HERE = Path(__file__).parent
GATE = str(Path(sys.executable).with_name("export-gate"))
EXAMPLES = ROOT / "examples" / "export-gate.yml"
BERT = HERE / "bert" / "export-gate.yml"
MODELS = ((EXAMPLES, "glyph-head"), (EXAMPLES, "affine-map"), (EXAMPLES, "sentence-encoder"), (BERT, "bert-base"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Of one or more processes, their children included."""

    wall_s: float
    cpu_s: float
    peak_bytes: int
    """Of the largest single process."""


def measure(commands: Sequence[Sequence[str]]) -> Cost:
    """Run the commands one after the other; each must succeed."""
    costs = [measure_one(command) for command in commands]
    return Cost(
        wall_s=sum(cost.wall_s for cost in costs),
        cpu_s=sum(cost.cpu_s for cost in costs),
        peak_bytes=max(cost.peak_bytes for cost in costs),
    )


def measure_one(command: Sequence[str]) -> Cost:
    """Run one command to its end."""
    started = time.perf_counter()
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment)
    assert process.stderr is not None
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}:\n{errors.decode()[-2000:]}")
    return Cost(
        wall_s=time.perf_counter() - started,
        cpu_s=usage.ru_utime + usage.ru_stime,
        peak_bytes=usage.ru_maxrss * 1024,
    )


def gate(config: Path, folder: Path, models: Sequence[str], jobs: int) -> list[str]:
    """The gate's command."""
    options = ["-c", str(config), "-j", str(jobs), "-q", "--no-cache", "--report-dir", str(folder / "report")]
    return [GATE, "run", *models, *options]


def script(config: Path, model: str, folder: Path) -> list[str]:
    """The script's command, with its inputs made beforehand."""
    place = folder / model
    place.mkdir()
    subprocess.run([sys.executable, HERE / "gate_inputs.py", config, model, place], check=True)
    return [sys.executable, str(HERE / "by_hand.py"), str(place / "plan.json")]


def compare(name: str, ours: Callable[[], Cost], theirs: Callable[[], Cost], runs: int, goal: float) -> None:
    """Alternate the two and print medians and ratios."""
    pairs = [(ours(), theirs()) for _ in range(runs)]
    row = [name]
    for field in ("wall_s", "cpu_s", "peak_bytes"):
        mine, other = (statistics.median(getattr(pair[side], field) for pair in pairs) for side in (0, 1))
        scale, unit = (2**20, "MiB") if field == "peak_bytes" else (1, "s")
        ratio = statistics.median(getattr(a, field) / getattr(b, field) for a, b in pairs)
        row.append(f"{mine / scale:8.1f} / {other / scale:6.1f} {unit} = {ratio:4.2f}")
    print(
        f"{row[0]:18} wall {row[1]}   cpu {row[2]}   peak {row[3]}   (wall goal {goal:.2f}, peak goal 1.15)", flush=True
    )


def main() -> None:
    """Print one row per comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", "--runs", type=int, default=3)
    parser.add_argument("--no-bert", action="store_true", help="leave out the 110-million-parameter model")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for name, goal, command in (
            ("validate", 0.25, [GATE, "validate", "-c", str(EXAMPLES)]),
            ("--help", 0.15, [GATE, "--help"]),
        ):
            cpu = statistics.median(measure([command]).cpu_s for _ in range(5))
            print(f"{name:18} cpu {cpu:.2f} s (goal {goal:.2f})", flush=True)
        by_hand = {}
        for config, model in MODELS:
            if model == "bert-base" and options.no_bert:
                continue
            by_hand[model] = hand = script(config, model, folder)
            one = gate(config, folder, [model], 1)
            compare(model, lambda one=one: measure([one]), lambda hand=hand: measure([hand]), options.runs, 1.10)
        three = [by_hand[model] for config, model in MODELS if config == EXAMPLES]
        together = gate(EXAMPLES, folder, [], 2)
        compare("three examples", lambda: measure([together]), lambda: measure(three), options.runs, 0.60)
    unchanged.report(options.runs)


if __name__ == "__main__":
    main()
