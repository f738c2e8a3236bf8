"""`export-gate init` on the kinds of models that projects have: most get a config that runs without an edit."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from harness.gate import gate

FACTORIES = Path(__file__).parents[1] / "models" / "zoo" / "factories.py"
NAMES = re.findall(r"^def make_(\w+)", FACTORIES.read_text(encoding="utf-8"), re.MULTILINE)
WANTED = 20
"""Of 24. One (`translator`) cannot be exported, whatever its inputs."""


@pytest.mark.nightly
@pytest.mark.slow(seconds=150)
def test_most_usual_models_get_a_config_that_runs(tmp_path: Path):
    """One config for all of them is written and verified at once; the table shows which ones need an edit."""
    assert len(NAMES) == 24
    shutil.copy(FACTORIES, tmp_path / "factories.py")
    done = gate(tmp_path, "init", *(f"factories:make_{name}" for name in NAMES))
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "export-gate.yml").read_text(encoding="utf-8")
    gate(tmp_path, "run", "-q", "--target", "exported-program", "--case", "normal-1*", "--case", "random-1*")
    results = json.loads((tmp_path / ".export-gate" / "results.json").read_text(encoding="utf-8"))
    broken = {f["model"]: f"{f['rule']}: {f['message']}" for f in results["findings"] if f["severity"] == "violation"}
    seen = {model["model"]: model["outputs"] for model in results["run"]["models"]}
    table = {name: broken.get(name, "verified" if seen[name] else "not observed") for name in seen}
    print("\n".join(f"{name:14} {said:.150}" for name, said in table.items()))  # noqa: T201 - for `pytest -s`
    assert len(table) == len(NAMES)
    assert text.count("# These inputs were tested: forward runs") >= WANTED
    assert sum(said == "verified" for said in table.values()) >= WANTED, table
