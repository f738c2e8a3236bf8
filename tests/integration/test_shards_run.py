"""A run over two machines is the run over one: planned, run in parts, joined, published."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from harness.gate import gate, surroundings

from export_gate.cache.folder import CacheFolder
from export_gate.cache.scene import entry_key, owner

MODEL = """
import torch


class Curve(torch.nn.Module):
    def forward(self, x):
        return torch.sigmoid(x) / 3


def make():
    return Curve().eval()
"""
ENTRY = """\
  {name}:
    factory: curve.py:make
    dims: {{batch: {{min: 2, max: 4}}}}
    inputs: {{x: {{dtype: float32, shape: [batch, 3], range: [-1, 1]}}}}
    targets: {{exported-program: {{}}}}
"""
NAMES = ("first", "second", "third")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three small models in a git repository."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "curve.py").write_text(MODEL)
    models = "".join(ENTRY.format(name=name) for name in NAMES)
    (folder / "export-gate.yml").write_text(f"version: 1\nmodels:\n{models}")
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    return folder


def test_shards_are_balanced_by_what_the_cache_knows(project: Path, tmp_path: Path):
    """A model that took as long as the two others together has a machine of its own."""
    environment = surroundings({"EXPORT_GATE_CACHE": str(tmp_path)})
    _, repository, name = owner(project / "export-gate.yml", environment)
    for model, seconds in zip(NAMES, (9.0, 3.0, 4.0), strict=True):
        CacheFolder(path=tmp_path).note_duration(entry_key(repository, name, model), seconds)
    plan = gate(project, "plan", "--shards", "2", environment=environment)
    assert [leg["models"] for leg in json.loads(plan.stdout)["include"]] == ["first", "second third"]


@pytest.mark.slow
def test_shards_join_to_the_whole(project: Path):
    """Each machine runs what the plan assigned to it; together they are verified, and a missing one is noticed."""
    plan = gate(project, "plan", "--shards", "2")
    assert plan.stdout == (
        '{"include": [{"shard": "1/2", "models": "first third"}, {"shard": "2/2", "models": "second"}]}\n'
    )
    for leg in json.loads(plan.stdout)["include"]:
        folder = f".export-gate/{leg['shard'][0]}"
        ran = gate(project, "run", "--quiet", "--shard", leg["shard"], "--report-dir", folder)
        assert ran.returncode == 0, ran.stderr
        results = json.loads((project / folder / "results.json").read_text())
        assert [model["model"] for model in results["run"]["models"]] == leg["models"].split()
        assert [contract["name"] for contract in results["planned"]] == list(NAMES)
        assert results["checkout"]["config"] == "export-gate.yml"
        assert results["checkout"]["lines"] == {name: 3 + 5 * NAMES.index(name) for name in leg["models"].split()}
    parts = [f".export-gate/{number}/results.json" for number in (1, 2)]
    joined = gate(project, "merge", *parts, "-o", "all.json")
    assert joined.returncode == 0
    assert joined.stdout.splitlines()[-1].startswith("export-gate: 3 of 3 models verified in ")
    assert [model["model"] for model in json.loads((project / "all.json").read_text())["run"]["models"]] == list(NAMES)
    half = gate(project, "merge", parts[0], "-o", "half.json")
    assert half.returncode == 3
    assert "second: the run ended before this model was checked." in half.stdout
    assert gate(project, "publish", "all.json").returncode == 0
    assert gate(project, "publish", "half.json").returncode == 3


@pytest.mark.slow
def test_a_shard_without_models_is_green(project: Path):
    """With more machines than models, a machine without models is green, and the join relies on the others."""
    ran = gate(project, "run", "--quiet", "--shard", "4/4", "--report-dir", ".export-gate/empty")
    assert ran.returncode == 0
    assert ran.stdout.splitlines()[-1].startswith("export-gate: no models to check in ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("run", "--shard", "3/2"),
            (
                "--shard: expected NUMBER/TOTAL, from 1/1 to 256/256, got '3/2'\n"
                "`export-gate plan --shards TOTAL` prints the shards with their models.\n"
            ),
        ),
        (("plan", "--shards", "2", "no"), "export-gate.yml: there is no model 'no'; it has first, second, third\n"),
        (("merge", "gone.json", "-o", "x.json"), "gone.json: file not found; `export-gate run` writes it\n"),
    ],
)
def test_mistakes(project: Path, arguments: tuple[str, ...], message: str):
    """Each mistake is one message and exit code 2."""
    ended = gate(project, *arguments)
    assert (ended.returncode, ended.stderr) == (2, message)
    assert not (project / "x.json").exists()
