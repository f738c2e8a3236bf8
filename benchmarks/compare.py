"""The gate beside hand-written scripts that do the same exports, loads and comparisons at the same control inputs.

`compare.py [PART ...]` prints a row per figure: measured, compared with what, the ratio, and the goal. Runs alternate,
so that a busy machine slows both alike; figures are medians of a few pairs.

What the gate does that a script leaves out, and where its goals are met or missed (2 cores, Python 3.11, torch 2.13,
sampled with the processes that the worker forks):

* BERT-base takes 0.97 to 1.02 times the script's wall time (1.3 before later targets were converted in a copy of the
  process while the first one runs), 1.3 to 1.4 times its CPU, and 1.02 to 1.08 times its peak. Exports, conversions,
  loads and the runs at the 41 control inputs take as long on both sides. A fifth of the gate's CPU is what the script
  leaves out: nine hundredths are eager in two copies that draw from other seeds, at each kind of input and twice
  (`chance`), five are guards, sizes and control inputs that were found on the way, three are hygiene and the
  surroundings, two check that the project's code replaced nothing, and two are digests of weights and files. A second
  instance of the model for the export, and the report, are the rest. The peak is that of ONNX Runtime's session beside
  the program's weights, and of one table of the file that is compared with them.
* One small model takes 0.80 to 0.91 times the script's wall time. Four tenths of the run import torch and the exporter,
  three export, convert and load, and a quarter verifies: the first two have nothing to save.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import stages
import unchanged

ROOT = Path(__file__).parents[1]
HERE = Path(__file__).parent
GATE = str(Path(sys.executable).with_name("export-gate"))
EXAMPLES = ROOT / "examples" / "export-gate.yml"
BERT = HERE / "bert" / "export-gate.yml"
DECODER = HERE / "decoder" / "export-gate.yml"
SMALL = "glyph-head"


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
    # An installed gate has its bytecode.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
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


def compare(name: str, ours: Callable[[], Cost], theirs: Callable[[], Cost], runs: int, goals: str) -> None:
    """Alternate the two and print medians and ratios."""
    pairs = [(ours(), theirs()) for _ in range(runs)]
    row = [f"{name:18}"]
    for field in ("wall_s", "cpu_s", "peak_bytes"):
        mine, other = (statistics.median(getattr(pair[side], field) for pair in pairs) for side in (0, 1))
        scale, unit = (2**20, "MiB") if field == "peak_bytes" else (1, "s")
        ratio = statistics.median(getattr(a, field) / getattr(b, field) for a, b in pairs)
        row.append(f"{field.partition('_')[0]} {mine / scale:.1f} / {other / scale:.1f} {unit} = {ratio:.2f}  ")
    print(" ".join(row), f"({goals})", flush=True)


def beside_script(config: Path, model: str, folder: Path, runs: int, goals: str) -> None:
    """One model, cold, beside its script."""
    hand = script(config, model, folder)
    one = gate(config, folder, [model], 1)
    compare(model, lambda: measure([one]), lambda: measure([hand]), runs, goals)


def start(folder: Path, runs: int) -> None:
    """The commands that answer at once, and a plan of a thousand models."""
    plans = {count: folder / f"{count}.yml" for count in (1, 1000)}
    for count, path in plans.items():
        path.write_text("version: 1\nmodels:" + "".join(map(unchanged.entry, range(count))))
    rows = (
        ("validate", 0.25, [GATE, "validate", "-c", str(EXAMPLES)]),
        ("--help", 0.15, [GATE, "--help"]),
        *(
            (f"plan, models: {count}", 1.0, [GATE, "plan", "-c", str(path), "--shards", "20"])
            for count, path in plans.items()
        ),
    )
    python = [sys.executable, "-c", "pass"]
    for name, goal, command in rows:
        pairs = [(measure([command]), measure([python])) for _ in range(2 * runs)]
        cpu = statistics.median(mine.cpu_s for mine, _ in pairs)
        ratio = statistics.median(mine.cpu_s / other.cpu_s for mine, other in pairs)
        peak = max(mine.peak_bytes for mine, _ in pairs) / 2**20
        print(
            f"{name:18} cpu {cpu:.2f} s = {ratio:.1f}x `python -c pass`, peak {peak:.0f} MiB (cpu {goal})", flush=True
        )


def small(folder: Path, runs: int) -> None:
    """One small model, cold."""
    beside_script(EXAMPLES, SMALL, folder, runs, "goal 0.90 of the wall time, 1.15 of the peak")
    share, total = stages.verifying_share(EXAMPLES, folder / "stages")
    print(f"{'verifying':18} {share:.0%} of {total:.1f} s, three examples (goal 30%)", flush=True)


def ten(folder: Path, runs: int) -> None:
    """Ten small models, cold, beside ten scripts."""
    project = folder / "ten"
    project.mkdir()
    unchanged.project(project)
    config = project / "export-gate.yml"
    first = script(config, "m0", folder)
    plan = json.loads(Path(first[-1]).read_text())
    hands = [first]
    # All ten have inputs of the same shape, which need not be drawn ten times.
    for number in range(1, unchanged.COUNT):
        place = folder / f"m{number}.json"
        place.write_text(json.dumps({**plan, "factory": f"m{number}:make"}))
        hands.append([*first[:-1], str(place)])
    together = gate(config, folder, [], len(os.sched_getaffinity(0)))
    goals = "goal 0.35 of the wall time"
    compare("ten small models", lambda: measure([together]), lambda: measure(hands), max(1, runs - 2), goals)


PARTS: dict[str, Callable[[Path, int], None]] = {
    "start": start,
    "unchanged": lambda _, runs: unchanged.report(runs),
    "small": small,
    "ten": ten,
    "bert": lambda folder, _: beside_script(BERT, "bert-base", folder, 1, "goal 1.00 of the wall time and the peak"),
    "decoder": lambda folder, _: beside_script(DECODER, "decoder-350m", folder, 1, "goal 1.15 of the peak"),
}
"""In the order in which they run; `decoder` takes ten minutes and 6 GB, and runs only if it is named."""


def main() -> None:
    """Print one row per comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"any of {', '.join(PARTS)}; all but the last if none")
    parser.add_argument("-n", "--runs", type=int, default=3, help="pairs of a figure")
    options = parser.parse_args()
    for part in options.parts or [name for name in PARTS if name != "decoder"]:
        if part not in PARTS:
            parser.error(f"there is no part {part!r}; there are {', '.join(PARTS)}")
        with tempfile.TemporaryDirectory() as scratch:
            PARTS[part](Path(scratch), options.runs)


if __name__ == "__main__":
    main()
