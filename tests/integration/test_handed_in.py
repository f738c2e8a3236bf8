"""Files that another job built and that ship are verified as they are, next to targets that the gate exports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from harness.gate import gate
from onnx import TensorProto, helper, numpy_helper

from export_gate.outcome.handed_in import refuse_own_artifacts
from export_gate.wall.contract import Job, ModelContract, make_target
from export_gate.wall.digest import digest_file
from export_gate.wall.errors import UserError

MODELS = """
import torch

def make():
    class Double(torch.nn.Module):
        def forward(self, x):
            return {"y": 2 * x}
    return Double().eval()
"""
CONFIG = """
version: 1
models:
  doubling:
    factory: models:make
    dims: {batch: {min: 2, max: 4}}
    inputs: {x: {dtype: float32, shape: [batch, 2], range: [-1, 1]}}
    controls: {limit: 3, affine-basis: never}
    targets: {exported-program: {}, onnx: {artifact: ARTIFACT}}
"""


def write_artifact(path: Path, factor: float = 2) -> None:
    """A graph that multiplies by a factor in an external file."""
    weight = numpy_helper.from_array(np.float32([factor]), "factor")
    given, returned = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 2]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Mul", ["x", "factor"], ["y"])], "g", [given], [returned], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(path), save_as_external_data=True, location=f"{path.name}.data", size_threshold=0)


def project(folder: Path, artifact: str) -> Path:
    """A project that hands that file in."""
    (folder / "models.py").write_text(MODELS)
    (folder / "export-gate.yml").write_text(CONFIG.replace("ARTIFACT", artifact))
    return folder


def targets(folder: Path) -> dict[str, dict[str, Any]]:
    """Target -> what was observed of it."""
    results = json.loads((folder / ".export-gate" / "results.json").read_text(encoding="utf-8"))
    return {target["target"]: target for target in results["run"]["models"][0]["targets"]}


@pytest.mark.slow
def test_a_handed_in_file_is_verified_beside_an_export(tmp_path: Path):
    """Both run on the same inputs; the report names the file with its digests, and the gate makes none for it."""
    folder = project(tmp_path, "dist/doubling.onnx")
    write_artifact(folder / "dist" / "doubling.onnx")
    before = {path.name: digest_file(path) for path in (folder / "dist").iterdir()}
    done = gate(folder, "run", "-q")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    seen = targets(folder)
    assert [len(seen[name]["cases"]) for name in ("exported-program", "onnx")] == [3, 3]
    artifact = seen["onnx"]["artifact"]
    assert artifact["path"] == "dist/doubling.onnx"
    assert artifact["files"] == {f"dist/{name}": sha256 for name, sha256 in sorted(before.items())}
    assert seen["exported-program"]["artifact"] is None
    assert artifact["sha256"][:12] in (folder / ".export-gate" / "report.md").read_text(encoding="utf-8")
    assert not list((folder / ".export-gate").rglob("*.onnx"))
    assert {path.name: digest_file(path) for path in (folder / "dist").iterdir()} == before


@pytest.mark.slow
def test_a_stale_file_is_a_violation(tmp_path: Path):
    """A file of an older model differs from what the factory makes now, and the fresh export does not."""
    folder = project(tmp_path, "dist/doubling.onnx")
    write_artifact(folder / "dist" / "doubling.onnx", factor=2.5)
    done = gate(folder, "run", "-q")
    results = json.loads((folder / ".export-gate" / "results.json").read_text(encoding="utf-8"))
    found = [(f["rule"], f["target"]) for f in results["findings"] if f["severity"] == "violation"]
    assert (done.returncode, found) == (1, [("value-mismatch", "onnx")])


def test_a_file_among_the_gates_own_stays(tmp_path: Path):
    """A file that a run would remove first is refused: exit code 2 with advice, and the file still exists."""
    folder = project(tmp_path, ".export-gate/artifacts/doubling/model.onnx")
    path = folder / ".export-gate" / "artifacts" / "doubling" / "model.onnx"
    write_artifact(path)
    done = gate(folder, "run", "-q")
    own = folder / ".export-gate" / "artifacts"
    message = (
        "models.doubling.targets.onnx.artifact: .export-gate/artifacts/doubling/model.onnx is in the report folder's "
        f"{own}, which every run clears; expected a file elsewhere\n"
        "copy it to a folder of the project, such as dist/, and name the copy, or use another --report-dir\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)
    assert path.is_file()


@pytest.mark.parametrize(
    ("artifact", "refused"),
    [
        ("gate/artifacts/m/model.pt2", True),
        ("gate/artifacts/other/model.pt2", True),
        ("dist/../gate/artifacts/m/model.pt2", True),
        ("link/m/model.pt2", True),
        ("gate/model.pt2", False),
        ("dist/model.pt2", False),
        ("gate/artifacts-kept/model.pt2", False),
    ],
)
def test_what_counts_as_the_gates_own(tmp_path: Path, artifact: str, refused: bool):
    """What counts is the file that is meant, through `..` and links; a run does not touch other files in the folder."""
    (tmp_path / "gate" / "artifacts" / "m").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "gate" / "artifacts")
    contract = ModelContract(
        name="m", factory="m:make", inputs={}, targets=(make_target("onnx"), make_target("pt2", artifact=artifact))
    )
    job = Job(
        contract=contract, base=str(tmp_path), pythonpath=(), artifacts=str(tmp_path / "gate" / "artifacts" / "m")
    )
    if refused:
        with pytest.raises(UserError, match=r"^models\.m\.targets\.pt2\.artifact: "):
            refuse_own_artifacts(tmp_path / "gate", (job,))
    else:
        refuse_own_artifacts(tmp_path / "gate", (job,))
