"""Calls at and beyond the contract's edge, with eager's answers, put to artifacts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from worker_samples import contract, subject, tensor

from export_gate.wall.contract import Dim
from export_gate.wall.observation import CaseResult, Comparison, Failure, Probe, Structure
from export_gate.worker.controls.record import ControlCase, Group
from export_gate.worker.model.factory import Factory, forward_parameters
from export_gate.worker.model.reference import Reference, Runner, module_runner
from export_gate.worker.model.reference_file import ReferenceFile
from export_gate.worker.study.eager import Eager
from export_gate.worker.study.laboratory import Laboratory
from export_gate.worker.study.masks import Masks
from export_gate.worker.study.probing import Probing, eager_begun, is_equal
from export_gate.worker.targets.base import Loaded

BATCH = Dim(name="batch", min=2, max=4)


class Checked(nn.Module):
    """Takes up to four rows."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """float32[batch, 3] to float32[batch]."""
        if len(x) > 4:
            raise ValueError("at most 4 rows")
        return x.sum(1)


def probing(*cases: ControlCase) -> Probing:
    """Eager's answers for Checked, which has run on these control inputs."""
    checked = subject(Checked(), contract({"x": tensor("batch", 3, range=(0.0, 1.0))}, BATCH))
    run = module_runner(Checked(), {"output": "y"})
    references = {case.name: Reference.held(case.name, run(checked.call(case))) for case in cases}
    with eager_begun(checked, cases, ReferenceFile(folder=Path())) as asked:
        return asked(Eager(references=references, outputs=(), names={"output": "y"}))


def probed(probing: Probing, loaded: Loaded, said: dict[str, CaseResult] | None = None) -> tuple[Probe, ...]:
    """An artifact's answers, which said that at control inputs."""
    with probing.begun(loaded, said or {}, nothing_masked()) as probes:
        return probes(said or {})


def nothing_masked() -> Masks:
    """What is known of a model without masks."""
    return Masks(contract=contract({}), laboratory=laboratory(Checked), axes={})


def laboratory(make: Callable[[], nn.Module]) -> Laboratory:
    """Makes the model again."""
    factory = Factory(make=make, reference="m:make", kwargs={}, base=Path())
    return Laboratory(factory=factory, parameters=forward_parameters(make()), names={"output": "y"})


def case(rows: int, group: Group = "generated") -> ControlCase:
    """A control input of so many rows."""
    return ControlCase(
        name=f"{group}@batch={rows}",
        family="normal",
        group=group,
        sizes={"batch": rows},
        make=lambda: {"x": torch.full((rows, 3), 0.5)},
    )


def runner(function: Callable[[torch.Tensor], Any]) -> Runner:
    """An artifact."""
    return module_runner(function, {"output": "y"})


def answers(probes: tuple[Probe, ...]) -> dict[tuple[str, str, str], str]:
    """Kind, what was tried and whether checks were on -> the answer."""
    return {(probe.kind, probe.tried, probe.checks): probe.answer for probe in probes}


def test_an_artifact_that_checks_nothing():
    """Beyond the range, an artifact may agree where eager accepts; where eager refuses, that is reported."""
    found = answers(probed(probing(), Loaded(run=runner(lambda x: x.sum(1)))))
    assert found[("at-min", "2", "default")] == "accepted-equal"
    assert found[("at-max", "4", "default")] == "accepted-equal"
    assert found[("below-min", "1", "default")] == "accepted-equal"
    assert found[("above-max", "5", "default")] == "accepted-eager-refuses"


def test_an_artifact_that_computes_something_else_outside():
    """Beyond the range, an answer other than eager's is reported with the size of the difference."""
    found = probed(probing(), Loaded(run=runner(lambda x: x.sum(1) + (len(x) == 1))))
    (probe,) = [probe for probe in found if probe.kind == "below-min"]
    assert probe.answer == "accepted-differs"
    assert probe.message.startswith("output 'y': max |P-M| 1 where max |M| is ")


@pytest.mark.slow
def test_an_artifact_with_a_switch_is_asked_twice():
    """An artifact with run-time checks answers as it ships and with them on."""

    def strict(x: torch.Tensor) -> torch.Tensor:
        if not 2 <= len(x) < 4:
            raise RuntimeError("dim value is too large")
        return x.sum(1)

    found = answers(probed(probing(), Loaded(run=runner(lambda x: x.sum(1)), run_checked=runner(strict))))
    assert found[("at-max", "4", "default")] == "accepted-equal"
    assert found[("at-max", "4", "runtime-checks")] == "refused"
    assert found[("at-min", "2", "runtime-checks")] == "accepted-equal"


@pytest.mark.slow
def test_a_control_input_of_the_same_sizes_answers_for_the_call(tmp_path: Path):
    """No call is made if a generated control input has the bound's size; the user's own data proves less."""

    def counted(x: torch.Tensor) -> torch.Tensor:
        (tmp_path / str(len(x))).touch()  # in a forked copy
        return x.sum(1)

    said = {
        "generated@batch=2": CaseResult(case="generated@batch=2", outputs=(comparison(max_abs_diff=1.0),)),
        "generated@batch=4": CaseResult(
            case="generated@batch=4",
            failure=Failure(stage="run", kind="exception", type="RuntimeError", message="\ntoo large\nfor me"),
        ),
    }
    found = probed(probing(case(2), case(4)), Loaded(run=runner(counted)), said)
    assert {(probe.kind, probe.tried): (probe.answer, probe.message) for probe in found if probe.axis == "batch"} == {
        ("below-min", "1"): ("accepted-equal", ""),
        ("at-min", "2"): ("accepted-differs", "output 'y': max |P-M| 1 where max |M| is 1"),
        ("at-max", "4"): ("refused", "too large"),
        ("above-max", "5"): ("accepted-eager-refuses", "eager refuses: at most 4 rows"),
    }
    assert {path.name for path in tmp_path.iterdir()} == {"1", "2", "5"}  # 2 with another dtype, and not 4
    assert all(answer.probe.case == "" for answer in probing(case(2, "data")).answers)


@pytest.mark.slow
def test_run_time_checks_are_asked_themselves():
    """What an artifact does as shipped does not show what it does with its checks on."""

    def strict(x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("never")

    said = {"generated@batch=4": CaseResult(case="generated@batch=4", outputs=(comparison(),))}
    found = answers(probed(probing(case(4)), Loaded(run=runner(lambda x: x.sum(1)), run_checked=runner(strict)), said))
    assert found[("at-max", "4", "default")] == "accepted-equal"
    assert found[("at-max", "4", "runtime-checks")] == "refused"


class Attending(nn.Module):
    """Weighs the kept positions; a row's position that is masked sees only itself."""

    def __init__(self, longest: int = 99, masked: float = 0.0) -> None:
        super().__init__()
        self.longest, self.masked = longest, masked

    def forward(self, x: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """float32[batch, seq] and int64[batch, seq] to float32[batch, seq]."""
        kept = attention_mask == 1
        mean = (x * kept)[:, : self.longest].sum(1, keepdim=True)
        return torch.where(kept, mean, x + self.masked)


@pytest.mark.parametrize(("longest", "answer"), [(99, "accepted-equal"), (6, "accepted-differs")])
def test_masked_places_say_nothing_about_sizes(longest: int, answer: str):
    """Other values at masked places are not those of a larger size; a baked size shows with every position kept."""
    declared = contract(
        {
            "x": tensor("batch", "seq", range=(1.0, 2.0)),
            "attention_mask": tensor("batch", "seq", dtype="int64", range=(0, 1)),
        },
        Dim(name="batch", min=2, max=4),
        Dim(name="seq", min=2, max=6),
    )
    checked = subject(Attending(), declared)
    with eager_begun(checked, (), ReferenceFile(folder=Path())) as asked:
        probing = asked(Eager(references={}, outputs=(), names={"output": "y"}))
    masks = Masks(contract=declared, laboratory=laboratory(Attending), axes={"y": ("batch", "seq")})
    artifact = module_runner(Attending(longest, masked=5.0), {"output": "y"})
    with probing.begun(Loaded(run=artifact), (), masks) as probes:
        found = {(probe.axis, probe.kind): probe.answer for probe in probes({})}
    assert found[("seq", "above-max")] == answer
    assert found[("batch", "above-max")] == "accepted-equal"


def test_a_separate_export_is_not_probed():
    """An export for one size has no bound to probe."""
    assert probed(Probing(), Loaded(run=runner(lambda x: x))) == ()


def comparison(**fields: Any) -> Comparison:
    """Equal outputs but for what is given."""
    same: dict[str, Any] = {
        "output": "y",
        "expected_dtype": "float32",
        "actual_dtype": "float32",
        "expected_shape": (2,),
        "actual_shape": (2,),
        "elements": 2,
        "expected_max_abs": 1.0,
    }
    return Comparison(**{**same, **fields})


@pytest.mark.parametrize(
    ("fields", "equal"),
    [
        ({}, True),
        ({"max_abs_diff": 0.0101}, True),
        ({"max_abs_diff": 0.0102}, False),
        ({"max_abs_diff": float("nan")}, False),
        ({"nonfinite_mismatched": 1}, False),
        ({"actual_dtype": "float64"}, False),
        ({"actual_shape": (3,)}, False),
        ({"expected_dtype": "int64", "actual_dtype": "int64", "max_abs_diff": 1.0, "expected_max_abs": 1e9}, False),
        ({"expected_dtype": "int64", "actual_dtype": "int64"}, True),
        ({"expected_dtype": "bool", "actual_dtype": "bool", "max_abs_diff": 1.0}, False),
    ],
)
def test_equal_is_up_to_far_more_than_rounding(fields: dict[str, Any], equal: bool):
    """Equal means within 1e-4 + 1e-2 of the largest value for floats, and exactly for integers, masks and types."""
    assert is_equal(CaseResult(case="c", outputs=(comparison(**fields),))) is equal


def test_another_structure_is_not_equal():
    """Other leaves are another answer."""
    assert not is_equal(CaseResult(case="c", structure=Structure(expected=("a",), actual=("b",))))
