"""The smallest failing input is copied to where the command line wants it, and commands name it there."""

from __future__ import annotations

from pathlib import Path

import pytest

from export_gate.outcome.judging import Outcome, judged
from export_gate.outcome.saved_case import save_smallest
from export_gate.report.commands import Caller, reproduce
from export_gate.report.results import Results
from export_gate.run.plan import from_config
from export_gate.wall.contract import ModelContract, TensorSpec, make_target
from export_gate.wall.diagnosis import Inspection
from export_gate.wall.errors import GateError, UserError
from export_gate.wall.observation import (
    CaseResult,
    Comparison,
    Environment,
    ModelObservation,
    RunObservation,
    TargetObservation,
)
from export_gate.wall.smallest import SmallestInput

FILE = "cases/m/onnx.smallest-y.npz"


def _outcome(folder: Path, file: str = FILE) -> Outcome:
    """One wrong output with a smallest input."""
    promised = ModelContract(
        name="m",
        factory="m:make",
        inputs={"x": TensorSpec(dtype="float32", shape=())},
        targets=(make_target("onnx"),),
    )
    comparison = Comparison(
        output="y",
        expected_dtype="float32",
        actual_dtype="float32",
        expected_shape=(1,),
        actual_shape=(1,),
        elements=1,
        max_abs_diff=1.0,
        where=(0,),
        mismatched_elements=1,
        error_quantiles=(1.0,) * 5,
    )
    smallest = SmallestInput(tensors=(), elements=1, elements_before=4, tried=3, file=file)
    target = TargetObservation(
        target="onnx",
        reached="guards",
        cases=(CaseResult(case="c", outputs=(comparison,)),),
        inspections=(Inspection(output="y", case="c", smallest=smallest),),
    )
    environment = Environment(python="3.11", executable="python", platform="Linux", cpu="AVX2")
    run = RunObservation(environment=environment, models=(ModelObservation(model="m", targets=(target,)),))
    return judged(
        Results(
            tool_version="0",
            config_path=str(folder / "export-gate.yml"),
            config_sha256="0" * 64,
            started="2026-03-02T09:14:07Z",
            duration_s=1.0,
            contracts=(promised,),
            run=run,
            findings=(),
            verdict="broken",
        )
    )


def _written(folder: Path) -> Path:
    path = folder / "report" / FILE
    path.parent.mkdir(parents=True)
    path.write_bytes(b"values")
    return path


def test_the_file_is_copied_and_the_command_names_it(tmp_path: Path):
    """The name starts at the config's folder, wherever that is."""
    _written(tmp_path)
    saved = save_smallest(_outcome(tmp_path), tmp_path / "report", tmp_path / "new" / "small.npz")

    assert (tmp_path / "new" / "small.npz").read_bytes() == b"values"
    (view,) = [view for view in saved.report.findings if view.finding.saved_case]
    assert view.command.endswith(f"--case '{tmp_path / 'new' / 'small.npz'}'")
    assert view.finding.saved_case == "new/small.npz"


@pytest.mark.parametrize("file", ["", "cases/m/missing.npz", "../outside.npz"])
def test_without_a_file_in_the_report_folder_nothing_is_written(tmp_path: Path, file: str):
    """Nothing is written, whatever the record says, and the caller is informed."""
    _written(tmp_path)
    (tmp_path / "outside.npz").write_bytes(b"secret")
    saved = save_smallest(_outcome(tmp_path, file), tmp_path / "report", tmp_path / "small.npz")

    assert not (tmp_path / "small.npz").exists()
    assert saved.notes == (f"{tmp_path / 'small.npz'}: not written, there is no smallest failing input",)


def test_a_link_is_not_followed(tmp_path: Path):
    """A model's process could have made the link."""
    path = _written(tmp_path)
    path.unlink()
    (tmp_path / "outside.npz").write_bytes(b"secret")
    path.symlink_to(tmp_path / "outside.npz")
    saved = save_smallest(_outcome(tmp_path), tmp_path / "report", tmp_path / "small.npz")

    assert saved.notes


def test_a_place_that_cannot_be_written_is_the_gates_error(tmp_path: Path):
    """The error has the path."""
    _written(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(GateError, match=r"small\.npz: cannot be written"):
        save_smallest(_outcome(tmp_path), tmp_path / "report", tmp_path / "file" / "small.npz")


def test_a_file_is_named_from_the_config_and_typed_from_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Both ways name the file that was typed; patterns stay unchanged."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "a[1].npz").write_bytes(b"")
    names = from_config(("normal-*", "a[1].npz"), tmp_path / "sub" / "gate.yml")

    assert names == ("normal-*", "../a[1].npz")
    assert reproduce(Caller(config="sub/gate.yml"), "m", case=names[1]).endswith("--case 'a[1].npz'")
    with pytest.raises(UserError, match=r"--case b\.npz: expected a pattern of control inputs or an \.npz file"):
        from_config(("b.npz",), tmp_path / "gate.yml")
