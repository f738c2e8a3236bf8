"""The files that a run leaves behind: named as the contract names things, digested, reproducible, ready to ship."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import pytest
import yaml

from export_gate import __version__
from export_gate.outcome.judging import Outcome
from export_gate.pipeline import run
from export_gate.run.order import Order
from export_gate.run.plan import Selection

ZOO = Path(__file__).parents[1] / "models" / "zoo" / "export-gate.yml"
MODELS = ("derived", "detector", "keywords", "neck", "separate")

LARGE_CONFIG = """\
version: 1
models:
  large:
    factory: large.py:make_model
    dims: {batch: {min: 1, max: 4}}
    inputs: {input: {dtype: int64, shape: [batch, 3], range: [0, 169999]}}
    controls: {limit: 5}
    targets: {onnx: {}}
"""
LARGE_MODEL = """\
import torch

def make_model():
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Embedding(170_000, 100), torch.nn.Linear(100, 2)).eval()
"""
LARGE_WEIGHTS_BYTES = 4 * (170_000 * 100 + 100 * 2 + 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run and its report folder."""

    outcome: Outcome
    folder: Path

    def manifest(self, model: str) -> dict[str, Any]:
        """A model's manifest.json."""
        text = (self.folder / "artifacts" / model / "manifest.json").read_text(encoding="utf-8")
        read: dict[str, Any] = json.loads(text)
        return read

    def graph(self, model: str) -> onnx.ModelProto:
        """A model's ONNX file without its external data."""
        return onnx.load(str(self.folder / "artifacts" / model / "model.onnx"), load_external_data=False)


def check(config: Path, folder: Path, *models: str) -> Run:
    """Run the gate over some models of a config."""
    order = Order(
        config=config,
        selection=Selection(models=models),
        python=sys.executable,
        parallel=2,
        folder=folder,
        environment=os.environ,
    )
    return Run(outcome=run(order, lambda *_: lambda _: None), folder=folder)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run]:
    """The same models verified twice on few inputs, each time by workers of their own into a folder of its own."""
    project = tmp_path_factory.mktemp("zoo") / "project"
    shutil.copytree(ZOO.parent, project)
    config = yaml.safe_load(ZOO.read_text(encoding="utf-8"))
    config["models"] = {name: {**config["models"][name], "controls": {"limit": 10}} for name in MODELS}
    (project / ZOO.name).write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    first, second = (tmp_path_factory.mktemp(name) / ".export-gate" for name in ("first", "second"))
    return check(project / ZOO.name, first), check(project / ZOO.name, second)


def shapes(values: Any) -> dict[str, list[str | int]]:
    """Name -> lengths of graph inputs or outputs, symbolic ones as their text."""
    return {v.name: [dim.dim_param or dim.dim_value for dim in v.type.tensor_type.shape.dim] for v in values}


def sha256(path: Path) -> str:
    """Digest of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def shipped(manifest: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Path and digest of every file in a manifest."""
    for artifact in manifest["artifacts"]:
        yield from artifact["files"].items()


NAMES = {
    "derived": (
        {"tokens": ["batch", "seq"], "spaced": ["batch", "2*seq+1", 8]},
        {"mixed": ["batch", "2*seq+1", 8]},
    ),
    "detector": (
        {"image": ["batch", 3, "side", "side"]},
        {
            "output.0.0": ["batch", 5, "4*(side//8)", "4*(side//8)"],
            "output.0.1": ["batch", 5, "2*(side//8)", "2*(side//8)"],
            "output.0.2": ["batch", 5, "(side//8)", "(side//8)"],
            "output.1.0": ["batch", 4, "4*(side//8)", "4*(side//8)"],
            "output.1.1": ["batch", 4, "2*(side//8)", "2*(side//8)"],
            "output.1.2": ["batch", 4, "(side//8)", "(side//8)"],
        },
    ),
    "keywords": (
        {"parts.left": ["batch", 4], "parts.right": ["batch", 3], "bias": ["batch", 2]},
        {"joined": ["batch", 6], "gate": ["batch", 6]},
    ),
    "neck": (
        {
            "features.0": ["batch", 4, "4*side", "4*side"],
            "features.1": ["batch", 6, "2*side", "2*side"],
            "features.2": ["batch", 8, "side", "side"],
        },
        {"map": ["batch", 8, "4*side", "4*side"]},
    ),
    "separate": ({"x": ["batch", 4]}, {"y": ["batch", 3]}),
    "separate/batch=1": ({"x": [1, 4]}, {"y": [1, 3]}),
}
"""Model (or its separate export) -> inputs and outputs as the contract spells them."""


@pytest.mark.slow(seconds=35)
@pytest.mark.parametrize("model", NAMES)
def test_onnx_files_speak_the_contracts_names(runs: tuple[Run, Run], model: str):
    """Inputs, outputs and dims of an ONNX file are named as in the contract, never `s77`."""
    graph = runs[0].graph(model).graph
    assert (shapes(graph.input), shapes(graph.output)) == NAMES[model]


@pytest.mark.slow
def test_onnx_files_carry_the_contract(runs: tuple[Run, Run]):
    """`metadata_props` have dims, inputs, tolerances and the digest of the control set, for whoever loads the file."""
    found = {entry.key: entry.value for entry in runs[0].graph("derived").metadata_props}
    (seen,) = [model for model in runs[0].outcome.results.run.models if model.model == "derived"]
    assert seen.controls is not None

    assert found["export_gate.model"] == "derived"
    assert found["export_gate.version"] == __version__
    assert found["export_gate.controls_sha256"] == seen.controls.sha256
    assert json.loads(found["export_gate.dims"]) == {
        "batch": {"min": 1, "max": 4, "multiple-of": 1},
        "seq": {"min": 1, "max": 24, "multiple-of": 1},
    }
    spaced = json.loads(found["export_gate.inputs"])["spaced"]
    assert (spaced["dtype"], spaced["shape"], spaced["range"]) == ("float32", ["batch", "2*seq+1", "8"], [-10, 10])
    assert set(json.loads(found["export_gate.tolerance"])) == {"exported-program", "pt2", "onnx", "model"}


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_manifests_list_every_file_with_its_digest(runs: tuple[Run, Run], model: str):
    """manifest.json has the sha256 of each verified file, and the folder contains no other file."""
    first, _ = runs
    manifest = first.manifest(model)
    listed = dict(shipped(manifest))
    place = first.folder / "artifacts" / model
    written = {str(path.relative_to(first.folder)) for path in place.rglob("*") if path.is_file()}

    assert {path: sha256(first.folder / path) for path in listed} == listed
    assert written - set(listed) == {f"artifacts/{model}/manifest.json"}
    assert manifest["verified"] is True
    for artifact in manifest["artifacts"]:
        assert artifact["sha256"] == listed[artifact["path"]]
        assert artifact["size-bytes"] == (first.folder / artifact["path"]).stat().st_size


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_artifacts_are_reproducible(runs: tuple[Run, Run], model: str):
    """Two runs over the same sources write the same bytes, .pt2 and ONNX alike."""
    first, second = (dict(shipped(each.manifest(model))) for each in runs)
    assert first == second
    assert {Path(path).suffix for path in first} == {".pt2", ".onnx"}


@pytest.mark.slow
def test_large_weights_lie_beside_the_graph(tmp_path: Path):
    """Weights above 64 MB go to external data, which the manifest digests as well."""
    (tmp_path / "export-gate.yml").write_text(LARGE_CONFIG, encoding="utf-8")
    (tmp_path / "large.py").write_text(LARGE_MODEL, encoding="utf-8")
    large = check(tmp_path / "export-gate.yml", tmp_path / ".export-gate")
    assert [f.message for f in large.outcome.judgement.findings if f.severity == "violation"] == []

    (artifact,) = large.manifest("large")["artifacts"]
    sizes = {Path(path).name: (large.folder / path).stat().st_size for path in artifact["files"]}

    assert set(sizes) == {"model.onnx", "model.onnx.data"}
    assert sizes["model.onnx"] < 1 << 20
    assert sizes["model.onnx.data"] >= LARGE_WEIGHTS_BYTES - 4 * 202  # small tensors may stay in the graph
    assert artifact["size-bytes"] == sum(sizes.values())
    assert {path: sha256(large.folder / path) for path in artifact["files"]} == artifact["files"]
