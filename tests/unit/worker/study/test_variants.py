"""Control inputs to the exports that serve them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from worker_samples import Recorder, contract, job, tensor

from export_gate.wall.contract import Controls, Dim, ModelContract, Tolerance, make_target
from export_gate.wall.observation import ModelObservation
from export_gate.worker.controls.build import build_control_set
from export_gate.worker.controls.generate import drawn_case
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.study import allowance
from export_gate.worker.study.engine import observe_model
from export_gate.worker.study.records import Variant
from export_gate.worker.study.variants import run_on, variants
from export_gate.worker.targets.metadata import contract_metadata

pytestmark = pytest.mark.slow

MODEL = '''
import torch
from torch import nn

class Pooled(nn.Module):
    """A batch or a side of one is a size of its own."""

    def forward(self, x):
        if x.shape[0] == 1:
            return x * 2
        if x.shape[1] == 1:
            return x * 3
        return x - x.mean(0)

class Stubborn(nn.Module):
    """Does not export at a batch of one."""

    def forward(self, x):
        return x * float(x.sum()) if x.shape[0] == 1 else x

class Biased(nn.Module):
    """Attention with a bias that is learned."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 4, batch_first=True).eval()
        self.bias = nn.Parameter(torch.randn(6, 6))

    def forward(self, x):
        return self.attention(x, x, x, attn_mask=self.bias, need_weights=False)[0]

class Thirds(nn.Module):
    def forward(self, x):
        return torch.stack([part.mean(1) for part in torch.chunk(x, 3, dim=1)], 1)

class Unrolled(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.rnn = nn.LSTM(3, 4, batch_first=True)

    def forward(self, x):
        return self.rnn(self.first(x))[0]

class Weighted(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(float(Weighted.made)))
        Weighted.made += 1

    made = 0

    def forward(self, x):
        return x * self.weight
'''


def case(**sizes: int) -> ControlCase:
    """A control input of those sizes."""
    name = ",".join(f"{dim}={size}" for dim, size in sizes.items())
    return ControlCase(name=name, family="normal", group="generated", sizes=sizes, make=dict)


def grouped(promised: ModelContract, cases: Sequence[ControlCase]) -> list[tuple[dict[str, int], list[str]]]:
    """Separate sizes with the names of their cases."""
    return [(found.separate, [member.name for member in found.cases]) for found in variants(promised, cases)]


def observe(
    promised: ModelContract, folder: Path, factory: str, *cases: str, skip: tuple[str, ...] = ()
) -> ModelObservation:
    """What the worker sees of a model of the file above."""
    (folder / "model.py").write_text(MODEL)
    recorder = Recorder(folder)
    work = replace(job(replace(promised, factory=f"model.py:{factory}"), folder, *cases), skip=skip)
    observe_model(work, recorder.desk.channel)
    return recorder.observation()


BATCH = Dim(name="batch", min=2, max=8, separate=(1,))
SIDE = Dim(name="side", min=2, max=8, separate=(1, 16))


def test_without_separate_sizes_there_is_one_export():
    """All cases belong to the main export."""
    plain = Dim(name="batch", min=1, max=8)
    cases = [case(batch=1), case(batch=8)]
    assert grouped(contract({}, plain), cases) == [({}, ["batch=1", "batch=8"])]


def test_cases_at_a_separate_size_have_an_export_of_their_own():
    """`separate: [1]` takes the cases at 1, in order, and the main export has the others."""
    cases = [case(batch=4), case(batch=1), case(batch=2), case(batch=1)]
    assert grouped(contract({}, BATCH), cases) == [
        ({}, ["batch=4", "batch=2"]),
        ({"batch": 1}, ["batch=1", "batch=1"]),
    ]


def test_each_separate_size_is_one_export():
    """Two sizes of one dim are two exports."""
    cases = [case(side=4), case(side=16), case(side=1)]
    assert [separate for separate, _ in grouped(contract({}, SIDE), cases)] == [{}, {"side": 16}, {"side": 1}]


def test_separate_sizes_of_two_dims_at_once():
    """A case at separate sizes of two dims has an export that fixes both."""
    cases = [case(batch=4, side=4), case(batch=1, side=4), case(batch=4, side=1), case(batch=1, side=1)]
    assert grouped(contract({}, BATCH, SIDE), cases) == [
        ({}, ["batch=4,side=4"]),
        ({"batch": 1}, ["batch=1,side=4"]),
        ({"side": 1}, ["batch=4,side=1"]),
        ({"batch": 1, "side": 1}, ["batch=1,side=1"]),
    ]


def test_a_separate_size_inside_the_range_is_still_separate():
    """If 1 is in the range and separate, its cases go only to the separate export."""
    cases = [case(batch=4), case(batch=1)]
    inside = replace(BATCH, min=1)
    assert grouped(contract({}, inside), cases) == [({}, ["batch=4"]), ({"batch": 1}, ["batch=1"])]


def test_the_main_export_is_always_there():
    """It exists even if every requested case has a separate size."""
    assert grouped(contract({}, BATCH), [case(batch=1)]) == [({}, []), ({"batch": 1}, ["batch=1"])]


def test_the_control_set_has_cases_for_every_separate_size(tmp_path: Path):
    """Each separate size gets an export, since each has control inputs."""
    promised = contract({"x": tensor("batch", "side", range=(-1.0, 1.0))}, BATCH, SIDE)
    found = grouped(promised, build_control_set(promised, tmp_path).cases)
    assert [separate for separate, _ in found] == [{}, {"batch": 1}, {"side": 1}, {"side": 16}]


def test_the_basis_belongs_to_the_export_of_its_sizes():
    """Only the export that runs the basis points is covered by them."""
    basis = replace(case(batch=1), group="affine")
    main, separate = variants(contract({}, BATCH), [case(batch=4), basis])
    assert (main.has_basis, separate.has_basis) == (False, True)
    assert not Variant(separate={}, cases=()).has_basis


SMALL: dict[str, Any] = {"controls": Controls(random=1, limit=12, affine_basis="never")}


@pytest.mark.slow
def test_separate_exports_are_observed_beside_the_main_one(tmp_path: Path):
    """Each export has its own targets and artifacts; only the main one, whose sizes have bounds, is probed."""
    promised = contract(
        {"x": tensor("batch", "side", range=(-1.0, 1.0))},
        BATCH,
        replace(SIDE, separate=(1,)),
        targets=(make_target("exported-program"), make_target("pt2")),
        **SMALL,
    )
    seen = observe(promised, tmp_path, "Pooled")
    assert seen.failure is None
    assert [(target.target, target.separate, target.failure) for target in seen.targets] == [
        ("exported-program", {}, None),
        ("pt2", {}, None),
        ("exported-program", {"batch": 1}, None),
        ("pt2", {"batch": 1}, None),
        ("exported-program", {"side": 1}, None),
        ("pt2", {"side": 1}, None),
    ]
    assert [bool(target.probes) for target in seen.targets] == [True, True, False, False, False, False]
    assert [target.artifact.path for target in seen.targets if target.artifact] == [
        "artifacts/m/model.pt2",
        "artifacts/m/batch=1/model.pt2",
        "artifacts/m/side=1/model.pt2",
    ]
    compared = [output for target in seen.targets for case in target.cases for output in case.outputs]
    assert all(output.max_abs_diff == 0 for output in compared)
    assert seen.controls is not None
    assert len(compared) == 2 * len(seen.controls.inputs)


@pytest.mark.slow
def test_other_layouts_go_to_targets_that_see_them(tmp_path: Path):
    """ONNX Runtime gets dense copies, so that a strided input would be the plain one again."""
    promised = contract(
        {"x": tensor("batch", 3, range=(0.0, 1.0))},
        Dim(name="batch", min=2, max=8),
        targets=(make_target("exported-program"), make_target("onnx")),
        controls=Controls(random=1, affine_basis="never", sizes={"batch": (4,)}),
    )
    seen = observe(promised, tmp_path, "Pooled")
    program, onnx = ([case.case for case in target.cases] for target in seen.targets)
    assert seen.controls is not None
    assert program == [member.name for member in seen.controls.inputs]
    strided = [name for name in program if name.startswith("noncontiguous")]
    assert len(strided) == 1
    assert onnx == [name for name in program if name not in strided]
    assert [member.name for member in seen.controls.run_on("onnx")] == onnx


def test_a_layout_that_is_asked_for_alone_goes_to_every_target():
    """Otherwise nothing would be compared."""
    promised = contract({"x": tensor(3)})
    plain, strided = (drawn_case(promised, family, 1, {}) for family in ("normal", "noncontiguous"))
    onnx = make_target("onnx")
    assert run_on(onnx, (plain, strided)) == (plain,)
    assert run_on(onnx, (strided,)) == (strided,)
    assert run_on(make_target("pt2"), (plain, strided)) == (plain, strided)


@pytest.mark.slow
def test_a_separate_export_that_fails_costs_its_own_targets(tmp_path: Path):
    """The failure is reported for each target of that export; the main export is verified."""
    promised = contract(
        {"x": tensor("batch", 3, range=(0.0, 1.0))},
        BATCH,
        targets=(make_target("exported-program"), make_target("pt2")),
        **SMALL,
    )
    seen = observe(promised, tmp_path, "Stubborn")
    assert seen.failure is None
    ended = [(target.target, target.separate, target.failure and target.failure.stage) for target in seen.targets]
    assert ended == [
        ("exported-program", {}, None),
        ("pt2", {}, None),
        ("exported-program", {"batch": 1}, "export"),
        ("pt2", {"batch": 1}, "export"),
    ]


@pytest.mark.slow
def test_targets_of_an_earlier_process_are_not_observed_again(tmp_path: Path):
    """After a death the next process skips what is done, and what was found about the dims stays complete."""
    promised = contract(
        {"x": tensor("batch", 3, range=(-1.0, 1.0))},
        BATCH,
        targets=(make_target("exported-program"), make_target("pt2")),
        **SMALL,
    )
    (tmp_path / "whole").mkdir()
    (tmp_path / "part").mkdir()
    whole = observe(promised, tmp_path / "whole", "Pooled")
    done = ("exported-program", "pt2", "exported-program@batch=1")
    part = observe(promised, tmp_path / "part", "Pooled", skip=done)
    assert [(target.target, target.separate) for target in part.targets] == [("pt2", {"batch": 1})]
    assert part.dims == whole.dims != ()


@pytest.mark.slow
def test_a_factory_that_draws_other_weights_is_told(tmp_path: Path):
    """Eager and the export have an instance each; if those differ, the observation says how."""
    seen = observe(contract({"x": tensor(3, range=(0.0, 1.0))}, **SMALL), tmp_path, "Weighted")
    assert seen.hygiene.factory_differs == ("weight",)


@pytest.mark.parametrize("steps", [1, 8])
def test_metadata_is_the_contract(steps: int):
    """An artifact carries dims, inputs, tolerances, the control set's digest and torch's version, each as text."""
    promised = contract(
        {"x": tensor("batch", "2*side+1", range=(0.0, float("inf")), nonfinite=("nan",))},
        replace(BATCH, separate=()),
        Dim(name="side", min=8, max=64, multiple_of=steps),
        targets=(make_target("onnx", tolerance=Tolerance(atol=1e-4)),),
        tolerance=Tolerance(rtol=1e-3, axis=1),
    )
    found = contract_metadata(promised, "abc")
    assert list(found) == [
        f"export_gate.{key}" for key in ("version", "model", "dims", "inputs", "tolerance", "controls_sha256", "torch")
    ]
    assert (found["export_gate.model"], found["export_gate.controls_sha256"]) == ("m", "abc")
    assert found["export_gate.torch"] == torch.__version__
    assert json.loads(found["export_gate.dims"]) == {
        "batch": {"min": 2, "max": 8, "multiple-of": 1},
        "side": {"min": 8, "max": 64, "multiple-of": steps},
    }
    assert json.loads(found["export_gate.inputs"]) == {
        "x": {
            "dtype": "float32",
            "shape": ["batch", "2*side+1"],
            "range": [0.0, "inf"],
            "values": [],
            "nonfinite": ["nan"],
        }
    }
    assert json.loads(found["export_gate.tolerance"]) == {
        "onnx": {"atol": 1e-4, "rtol": None, "axis": None},
        "model": {"atol": None, "rtol": 1e-3, "axis": 1},
    }


@pytest.mark.slow
def test_eager_and_export_have_an_instance_each(tmp_path: Path):
    """The factory is called once for eager and once for each export."""

    class Made(nn.Module):
        count = 0

        def __init__(self) -> None:
            super().__init__()
            Made.count += 1

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1

    import sys
    import types

    module = types.ModuleType("made_in_test")
    module.__dict__["make"] = Made
    sys.modules["made_in_test"] = module
    try:
        promised = contract({"x": tensor("batch", 3, range=(0.0, 1.0))}, BATCH, **SMALL)
        recorder = Recorder(tmp_path)
        observe_model(job(replace(promised, factory="made_in_test:make"), tmp_path), recorder.desk.channel)
    finally:
        del sys.modules["made_in_test"]
    assert Made.count == 3


@pytest.mark.slow
def test_attention_with_a_learned_bias_converts(tmp_path: Path):
    """The program is that of weights without gradients, so its decompositions use the same kernels as eager."""
    promised = contract(
        {"x": tensor("batch", 6, 8, range=(-1.0, 1.0))},
        Dim(name="batch", min=2, max=8),
        controls=Controls(random=1, limit=3, affine_basis="never"),
        targets=(make_target("onnx"),),
    )
    (target,) = observe(promised, tmp_path, "Biased").targets
    assert target.failure is None
    assert max(output.max_abs_diff for case in target.cases for output in case.outputs) < 1e-5


@pytest.mark.slow
def test_a_declaration_that_exports_is_found_by_trying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Thirds of a length exist at every third length; an `auto` dim exports too, but its program refuses others."""
    monkeypatch.setattr(allowance, "LEAST_S", 20.0)
    length = Dim(name="length", min=5, max=20)
    seen = observe(contract({"x": tensor(2, "length", range=(-1.0, 1.0))}, length, **SMALL), tmp_path, "Thirds")
    assert seen.failure is not None
    answers = {str(trial.declared): trial.answer for trial in seen.export_trials}
    assert answers["{'mode': 'auto'}"] == "narrowed"
    assert answers["{'multiple-of': 3, 'min': 6, 'max': 18}"] == "exported"


@pytest.mark.slow
def test_an_unrolled_layer_is_recorded_with_the_dim_of_its_length(tmp_path: Path):
    """It is recorded only if the export failed, because only then it is needed."""
    time, batch = Dim(name="time", min=2, max=9), Dim(name="batch", min=2, max=8)
    folders = tmp_path / "dynamic", tmp_path / "fixed"
    for folder in folders:
        folder.mkdir()
    dynamic = contract({"x": tensor("batch", "time", 3, range=(-1.0, 1.0))}, batch, time, **SMALL)
    fixed = contract({"x": tensor("batch", 5, 3, range=(-1.0, 1.0))}, batch, **SMALL)
    seen, other = (observe(each, at, "Unrolled") for each, at in zip((dynamic, fixed), folders, strict=True))
    assert seen.failure is not None
    assert seen.recurrent == {"rnn (LSTM)": "time"}
    assert other.failure is None
    assert other.recurrent == {}
