"""Tables of a file that are not the program's, and how much of them the control inputs read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
import torch
from onnx import numpy_helper
from worker_samples import Recorder, contract, job, tensor

from export_gate.wall.contract import Controls, Dim, ModelContract, make_target
from export_gate.wall.observation import TableRead, TargetObservation
from export_gate.wall.request import Observe
from export_gate.worker.study import table_reads
from export_gate.worker.study.engine import observe_model

pytestmark = pytest.mark.slow

MODEL = """
import torch
from torch import nn

class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.kinds = nn.Embedding(500, 4), nn.Embedding(2, 4)

    def forward(self, ids, kind):
        return self.words(ids) + self.kinds(kind)

def make():
    torch.manual_seed(3)
    return Words().eval()

def every():
    return {"rows": (torch.arange(500).reshape(2, 250), torch.zeros(2, 250, dtype=torch.int64))}
"""
BATCH, SEQ = Dim(name="batch", min=2, max=4), Dim(name="seq", min=2, max=250)


def promised(*, artifact: str | None = None, function: str | None = None) -> ModelContract:
    """A few inputs for a table of 500 rows, and one of two rows."""
    return contract(
        {
            "ids": tensor("batch", "seq", dtype="int64", range=(0, 499)),
            "kind": tensor("batch", "seq", dtype="int64", range=(0, 1)),
        },
        BATCH,
        replace(SEQ, example=6),
        controls=Controls(random=1, limit=4, affine_basis="never", sizes={"seq": (6,)}, function=function),
        targets=(make_target("onnx", artifact=artifact),),
    )


def observed(folder: Path, what: ModelContract) -> TargetObservation:
    """What is seen of the file."""
    (folder / "events").unlink(missing_ok=True)
    (folder / "tables_model.py").write_text(MODEL)
    recorder = Recorder(folder)
    observe_model(
        job(replace(what, factory="tables_model.py:make"), folder), recorder.desk.channel, task=Observe(diagnosis=False)
    )
    (target,) = recorder.observation().targets
    assert target.failure is None
    return target


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that the gate makes, one with a wrong row that few inputs read, and one with rounded tables."""
    folder = tmp_path_factory.mktemp("files")
    assert observed(folder, promised()).tables == ()  # its tables are the program's
    (made,) = (folder / "report").rglob("*.onnx")
    for name, change in (("faulty", _with_wrong_row), ("rounded", _rounded)):
        model = onnx.load(str(made))
        for table in model.graph.initializer:
            if list(table.dims) == [500, 4] or (name == "rounded" and list(table.dims) == [2, 4]):
                table.CopyFrom(numpy_helper.from_array(change(numpy_helper.to_array(table)), table.name))
        onnx.save(model, str(folder / f"{name}.onnx"))
    onnx.save(onnx.load(str(made)), str(folder / "same.onnx"))
    return folder


def _with_wrong_row(table: np.ndarray) -> np.ndarray:
    changed = table.copy()
    changed[333] += 1
    return changed


def _rounded(table: np.ndarray) -> np.ndarray:
    return table * np.float32(1 + 2**-22)


@pytest.mark.slow
def test_an_edited_row_is_read_although_no_draw_reads_it(files: Path):
    """Inputs read rows that are not the module's while most others are; the share of rows is reported as well."""
    faulty = observed(files, promised(artifact="faulty.onnx"))
    wrong = {case.case.split("@")[0] for case in faulty.cases for output in case.outputs if output.max_abs_diff}
    assert wrong
    assert all(name.startswith("threshold-rows") for name in wrong)
    (found,) = faulty.tables
    assert (found.input, found.rows) == ("ids", 500)
    assert 0 < found.read < 250
    same = observed(files, promised(artifact="same.onnx"))
    assert (same.tables, [case for case in same.cases if case.case.startswith("threshold-rows")]) == ((), [])


@pytest.mark.slow
def test_a_table_that_is_read_in_full_is_compared(files: Path):
    """If every row was read, a wrong one is a difference, and nothing is left to warn about; so for a short table."""
    faulty = observed(files, promised(artifact="faulty.onnx", function="tables_model.py:every"))
    assert max(output.max_abs_diff for case in faulty.cases for output in case.outputs) == pytest.approx(1.0)
    assert faulty.tables == ()
    rounded = observed(files, promised(artifact="rounded.onnx"))
    assert [type(each) for each in rounded.tables] == [TableRead]
    assert rounded.tables[0].rows == 500


SHIFTED = """
import torch
from torch import nn

class Shifted(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(60, 4)

    def forward(self, ids):
        return self.words(ids)

def make():
    torch.manual_seed(3)
    return Shifted().eval()

def rounded():
    module = make()
    module.words.weight.data *= 1 + 2**-22
    return module
"""


@pytest.mark.slow
def test_a_saved_program_that_was_handed_in_is_looked_into_as_well(tmp_path: Path):
    """One with the model's own table has nothing to warn about, whatever was read."""
    (tmp_path / "shifted_model.py").write_text(SHIFTED)
    names: dict[str, Any] = {}
    exec(SHIFTED, names)
    example = (torch.arange(6).reshape(2, 3),)
    for name in ("make", "rounded"):
        torch.export.save(torch.export.export(names[name](), example), tmp_path / f"{name}.pt2")
    what = contract(
        {"ids": tensor(2, 3, dtype="int64", range=(0, 59))},
        controls=Controls(random=1, limit=4, affine_basis="never"),
        targets=(make_target("pt2", artifact="make.pt2"), make_target("pt2", name="other", artifact="rounded.pt2")),
    )
    recorder = Recorder(tmp_path)
    observe_model(
        job(replace(what, factory="shifted_model.py:make"), tmp_path),
        recorder.desk.channel,
        task=Observe(diagnosis=False),
    )
    own, other = recorder.observation().targets
    assert (own.failure, own.tables, other.failure) == (None, (), None)
    (found,) = other.tables
    assert (found.table, found.input, found.rows) == ("words.weight", "ids", 60)
    assert 0 < found.read < 30


def test_only_weights_that_may_be_the_table_are_looked_at(monkeypatch: pytest.MonkeyPatch):
    """Some have to be seen for it, and all of them would cost as much memory as the model."""
    seen: list[int] = []

    def seen_as_numpy(tensor: torch.Tensor) -> npt.NDArray[Any]:
        seen.append(tensor.numel())
        return tensor.numpy().copy()

    monkeypatch.setattr(table_reads, "seen_as_numpy", seen_as_numpy)
    weights = [torch.zeros(1000), torch.arange(6.0).reshape(2, 3), torch.zeros(3, 2)]
    assert table_reads._is_own(np.arange(6.0, dtype=np.float32).reshape(2, 3).T, weights)
    assert not table_reads._is_own(np.ones(7, dtype=np.float32), weights)
    assert seen == [6]
    assert not table_reads._is_own(np.ones(6, dtype=np.float32), weights)
    assert seen == [6, 6, 6]
