"""The gate on a folder of projects, each with an `export-gate.yml` of its own: one line a project, worst verdicts last.

For corpora of known exporter faults: what is caught, by which rule, and how long it takes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter

PARALLEL = 2
VERDICTS = {0: "verified", 1: "violations", 2: "config", 3: "gate failed"}


def observe(project: Path) -> tuple[int, float, list[str]]:
    """Exit code, wall seconds and the rules behind the violations."""
    gate = Path(sys.executable).with_name("export-gate")
    with tempfile.TemporaryDirectory() as folder:
        begun = perf_counter()
        command = [gate, "run", "--config", project / "export-gate.yml", "--report-dir", folder]
        done = subprocess.run(command, check=False, capture_output=True)
        seconds = perf_counter() - begun
        written = Path(folder) / "results.json"
        findings = json.loads(written.read_text())["findings"] if written.exists() else []
    return done.returncode, seconds, sorted({f["rule"] for f in findings if f["severity"] == "violation"})


def main(root: Path) -> None:
    """Print a line per project under `root`, then the count of each verdict."""
    projects = sorted(path.parent for path in root.glob("*/export-gate.yml"))
    if not projects:
        sys.exit(f"{root}: no project with an export-gate.yml; try `make cases CASES=folder`")
    with ThreadPoolExecutor(PARALLEL) as pool:
        rows = sorted(zip(pool.map(observe, projects), projects, strict=True), key=lambda row: row[0][0])
    for (code, seconds, rules), project in rows:
        print(f"{VERDICTS.get(code, code):12}{seconds:7.1f} s  {project.name:40} {', '.join(rules)}".rstrip())
    for code, verdict in VERDICTS.items():
        print(f"{verdict}: {sum(row[0][0] == code for row in rows)}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
