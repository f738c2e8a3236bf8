"""Artifacts as they were verified, and the files on disk at the end."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from export_gate.rules import load_failed
from export_gate.rules.measure import measure
from export_gate.run.seal import remove_unfinished, sealed
from export_gate.wall.contract import Job, ModelContract, make_target
from export_gate.wall.observation import Artifact, Failure, ModelObservation, RunObservation, TargetObservation

CONTENT = b"an artifact"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


def job(folder: Path, artifact: str | None = None) -> Job:
    """A job that makes an ONNX file, or is handed one."""
    contract = ModelContract(
        name="m",
        factory="m:f",
        inputs={},
        targets=(make_target("exported-program"), make_target("onnx", artifact=artifact)),
    )
    artifacts = str(folder / "report" / "artifacts" / "m")
    return Job(contract=contract, base=str(folder), pythonpath=(), artifacts=artifacts)


def observed(path: str, failure: Failure | None = None) -> RunObservation:
    """One artifact, verified at that path."""
    artifact = Artifact(path=path, sha256=DIGEST, size_bytes=len(CONTENT), files={path: DIGEST})
    targets = (
        TargetObservation(target="exported-program"),
        TargetObservation(target="onnx", artifact=artifact, failure=failure),
    )
    return RunObservation(models=(ModelObservation(model="m", targets=targets),))


def written(folder: Path, path: str) -> Path:
    """The file of the artifact."""
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_bytes(CONTENT)
    return folder / path


@pytest.mark.parametrize("artifact", [None, "dist/m.onnx"])
def test_unchanged_files_change_nothing(tmp_path: Path, artifact: str | None):
    """If the files are what was verified, the observations do not change, for own and handed-in files."""
    path = artifact or "artifacts/m/model.onnx"
    written(tmp_path if artifact else tmp_path / "report", path)
    run = observed(path)
    assert sealed(run, (job(tmp_path, artifact),), tmp_path / "report") == run


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda path: path.write_bytes(b"another"), hashlib.sha256(b"another").hexdigest()[:12] + "..."),
        (Path.unlink, "no file"),
        (lambda path: (path.unlink(), path.mkdir()), "no file"),
    ],
)
def test_a_changed_file_fails_its_target(tmp_path: Path, change: Callable[[Path], object], found: str):
    """Other content, no file or a folder: the target fails with both digests and is not a pass."""
    change(written(tmp_path / "report", "artifacts/m/model.onnx"))
    run = sealed(observed("artifacts/m/model.onnx"), (job(tmp_path),), tmp_path / "report")
    assert run.models[0].targets[0].failure is None
    (finding,) = load_failed.RULE.check(measure(job(tmp_path).contract, run.models[0]))
    assert finding.message == (
        "m, onnx: the artifact changed while it was verified: artifacts/m/model.onnx was sha256 "
        f"{DIGEST[:12]}... when it was loaded; now it is {found}"
    )


def test_an_earlier_failure_is_kept(tmp_path: Path):
    """The first failure of a target is not hidden by what happened to its files."""
    failure = Failure(stage="run", kind="died", type="SIGSEGV", message="")
    run = observed("artifacts/m/model.onnx", failure)
    assert sealed(run, (job(tmp_path),), tmp_path / "report") == run


def test_only_whole_artifacts_stay(tmp_path: Path):
    """What a dead conversion left is removed with its folders and links; artifacts and other files stay."""
    report = tmp_path / "report"
    kept = written(report, "artifacts/m/model.onnx")
    for name in ("artifacts/m/model.pt2", "artifacts/m/batch=1/model.onnx.data", "artifacts/m/model.onnx.tmp/x"):
        written(report, name)
    (report / "artifacts" / "m" / "link").symlink_to(tmp_path)
    beside = written(report, "artifacts/other/model.onnx"), written(tmp_path, "precious")
    remove_unfinished(observed("artifacts/m/model.onnx"), (job(tmp_path),))
    assert list((report / "artifacts" / "m").rglob("*")) == [kept]
    assert all(path.exists() for path in beside)
