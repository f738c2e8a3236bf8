"""The smallest failing input fails as the worst one does, and is written to a file that can be run again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from worker_samples import Fn, contract, tensor

from export_gate.wall.contract import Dim, ModelContract
from export_gate.wall.errors import UserError
from export_gate.wall.smallest import SmallestInput
from export_gate.wall.tolerance import resolve_tolerance
from export_gate.worker.controls.case_file import file_case
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.model.factory import Factory, forward_parameters
from export_gate.worker.model.reference import module_runner
from export_gate.worker.study import shrinking
from export_gate.worker.study.laboratory import Laboratory
from export_gate.worker.study.masks import Masks
from export_gate.worker.study.shrinking import Shrinker
from export_gate.worker.study.trials import Bench

CONTRACT = contract({"x": tensor("n", range=(-4, 4))}, Dim(name="n", min=2, max=16))
Function = Callable[[torch.Tensor], torch.Tensor]


def _smallest(
    folder: Path, eager: Function, artifact: Function, values: list[float], program: Function | None = None,
    *, output: str = "output", family: str = "normal", promised: ModelContract = CONTRACT,
) -> SmallestInput | None:  # fmt: skip
    parameters = forward_parameters(Fn(eager))
    factory = Factory(make=lambda: Fn(eager), reference="m:make", kwargs={}, base=Path())
    laboratory = Laboratory(factory=factory, parameters=parameters, names={})
    tolerance = partial(resolve_tolerance, promised, "onnx")
    bench = Bench(contract=promised, run=module_runner(Fn(artifact), {}), laboratory=laboratory, tolerance=tolerance)
    shrinker = Shrinker(
        bench=bench,
        program=None if program is None else lambda: module_runner(Fn(program), {}),
        masks=Masks(contract=promised, laboratory=laboratory, axes={}),
        fixed=(),
        folder=folder / "cases" / "m",
        root=folder,
        name="onnx",
    )
    case = ControlCase(
        name="c", family=family, group="data", sizes={"n": len(values)}, make=lambda: {"x": torch.tensor(values)}
    )
    return shrinker.inspect(output, case).smallest


@pytest.fixture(autouse=True)
def _has_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shrinking, "LIMIT_S", 1000.0)  # a slow machine shrinks as far as a fast one


VALUES = [0.3, -1.2, 2.71, 0.9, -0.4, 1.7]


def test_an_input_shrinks_to_the_element_that_fails(tmp_path: Path):
    """The record has both sides' values there, and a file that the contract accepts."""
    found = _smallest(tmp_path, torch.relu, lambda x: x.clamp(0, 2), VALUES)

    assert found is not None
    assert (found.sizes, found.elements, found.elements_before, found.is_finished) == ("n=2", 2, 6, True)
    assert (found.expected_at, found.actual_at) == (3.0, 2.0)
    assert found.tensors[0].text in ("[0.0, 3.0]", "[3.0, 0.0]")
    again = file_case(CONTRACT, tmp_path, found.file)
    assert (again.name, again.sizes) == ("cases/m/onnx.smallest-output.npz", {"n": 2})
    assert str(again.make()["x"].tolist()) == found.tensors[0].text


def test_it_keeps_the_changes_that_cure_it(tmp_path: Path):
    """An artifact that is wrong only at zeros must not be shown wrong at another value."""
    found = _smallest(tmp_path, torch.relu, lambda x: torch.where(x == 0, 1.0, torch.relu(x)), [0.5, 0.0, 1.5])

    assert found is not None
    assert found.tensors[0].text == "[0.0, 0.0]"


def test_it_keeps_the_answer_of_the_exported_program(tmp_path: Path):
    """If the program differs as well, another part is to blame."""
    found = _smallest(
        tmp_path, torch.relu, lambda x: x * 0 - 1, [0.5, 1.5, 2.5], program=lambda x: torch.where(x < 0.4, 9.0, x)
    )

    assert found is not None
    assert found.tensors[0].text == "[1.0, 1.0]"


@pytest.mark.slow
def test_it_does_not_shrink_onto_a_jump_of_the_model(tmp_path: Path):
    """`x % 1` jumps at whole numbers, where the smallest shift is a large difference and says nothing of the rest."""

    def shifted(x: torch.Tensor) -> torch.Tensor:
        return torch.where(x > 2, 2 * (x % 1.0), (x - 2e-7) % 1.0)

    found = _smallest(tmp_path, lambda x: x % 1.0, shifted, [0.25, 3.25, 2.75])
    assert found is not None
    assert found.expected_at == pytest.approx(0.2)
    assert found.actual_at == pytest.approx(0.4)


def test_rounding_alone_is_not_a_failure(tmp_path: Path):
    """Eager itself is as far from the exact result."""
    assert _smallest(tmp_path, lambda x: x + 1e5 - 1e5, lambda x: x, VALUES) is None


def test_a_call_that_raises_shrinks_as_well(tmp_path: Path):
    """It shrinks to the smallest input that raises the same exception."""

    def refuse(x: torch.Tensor) -> torch.Tensor:
        if x.max() > 2:
            raise IndexError
        return x

    found = _smallest(tmp_path, torch.relu, refuse, VALUES, output="")
    assert found is not None
    assert (found.elements, found.expected_at) == (2, None)
    assert "3.0" in str(found.tensors[0].text)


def test_time_that_is_over_leaves_what_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The record says that it did not finish."""
    monkeypatch.setattr(shrinking, "MOST_TRIED", 3)
    found = _smallest(tmp_path, torch.relu, lambda x: x.clamp(0, 2), VALUES)

    assert found is not None
    assert (found.tried, found.is_finished) == (3, False)


def test_layouts_have_no_smallest_input(tmp_path: Path):
    """A file stores values, not strides."""
    assert _smallest(tmp_path, torch.relu, lambda x: x + 1, VALUES, family="noncontiguous") is None


def test_a_file_that_does_not_fit_is_refused(tmp_path: Path):
    """The message has the name of the input and what the contract says."""
    np.savez(tmp_path / "small.npz", y=np.ones(2, np.float32))
    with pytest.raises(UserError, match="expected a key 'x'"):
        file_case(CONTRACT, tmp_path, "small.npz")
    np.savez(tmp_path / "long.npz", x=np.zeros(17, np.float32))
    with pytest.raises(UserError, match=r"expected 2\.\.16, got 17"):
        file_case(CONTRACT, tmp_path, "long.npz")


def test_an_input_outside_the_range_stays_there(tmp_path: Path):
    """A project's own input may be; what shrinks it need not return into the range, and its file is taken."""
    found = _smallest(tmp_path, torch.relu, lambda x: x.clamp(0, 6), [0.5, 7.3, 0.1])

    assert found is not None
    assert found.tensors[0].text in ("[0.0, 7.0]", "[7.0, 0.0]")
    assert file_case(CONTRACT, tmp_path, found.file).make()["x"].max() == 7


def test_bfloat16_is_read_back_from_a_file(tmp_path: Path):
    """NumPy has no such type, so the file has float32."""
    np.savez(tmp_path / "half.npz", x=np.array([0.5, 1.0], np.float32))
    own = contract({"x": tensor("n", dtype="bfloat16")}, Dim(name="n", min=2, max=16))

    assert file_case(own, tmp_path, "half.npz").make()["x"].dtype == torch.bfloat16
