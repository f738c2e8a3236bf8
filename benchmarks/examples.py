"""What the gate costs on the examples: seconds per model and target, peak memory, and the wall time of a whole run."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

ROOT = Path(__file__).parents[1]
RUNS = 3


def observe_once(folder: Path) -> tuple[float, dict[str, Any]]:
    """Wall seconds of one run in a fresh process, and its results."""
    gate = Path(sys.executable).with_name("export-gate")
    config = ROOT / "examples" / "export-gate.yml"
    begun = perf_counter()
    subprocess.run([gate, "run", "--config", config, "--report-dir", folder], check=True, stdout=subprocess.DEVNULL)
    return perf_counter() - begun, json.loads((folder / "results.json").read_text())


def main() -> None:
    """Print one row per model and the wall time of all."""
    with tempfile.TemporaryDirectory() as folder:
        runs = [observe_once(Path(folder)) for _ in range(RUNS)]
    models = [{model["model"]: model for model in results["run"]["models"]} for _, results in runs]
    print(f"{'model':20}{'target':20}{'seconds':>9}")
    for name in models[0]:
        same = [run[name] for run in models]
        peak = min(model["peak_memory_bytes"] for model in same) / 2**20
        print(f"{name:20}{'all':20}{min(model['duration_s'] for model in same):9.2f}   peak {peak:.0f} MiB")
        for i, target in enumerate(same[0]["targets"]):
            print(f"{'':20}{target['target']:20}{min(model['targets'][i]['duration_s'] for model in same):9.2f}")
    print(f"\nwhole run, best of {RUNS}: {min(wall for wall, _ in runs):.2f} s")


if __name__ == "__main__":
    main()
