"""Axes that are sums of dims: through torch.export, ONNX and the guards."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from test_export import export
from torch import Tensor, nn
from worker_samples import contract, tensor

from export_gate.wall.contract import Dim, ModelContract
from export_gate.wall.observation import DimFound
from export_gate.worker.export.axes import found_dims
from export_gate.worker.export.program import Exported
from export_gate.worker.targets.onnx_names import dim_names, rename_dims

pytestmark = pytest.mark.slow

PAST, CUR = Dim(name="past", min=0, max=6), Dim(name="cur", min=1, max=4)


class Attend(nn.Module):
    """One step of attention over what came before and what is new; the mask covers both."""

    def forward(self, past: Tensor, cur: Tensor, mask: Tensor) -> Tensor:
        """float32[past, 4], float32[cur, 4], float32[past + cur] to float32[cur, 4]."""
        keys = torch.cat([past, cur])
        return (cur @ keys.T + mask).softmax(-1) @ keys


class Fixed(nn.Module):
    """Writes the length of the mask out."""

    def forward(self, past: Tensor, cur: Tensor, mask: Tensor) -> Tensor:
        """The sum of everything."""
        return past.sum() + cur.sum() + mask.reshape(5).sum()


class Loose(nn.Module):
    """Nothing relates the mask to the other inputs."""

    def forward(self, past: Tensor, cur: Tensor, mask: Tensor) -> Tensor:
        """The sum of everything."""
        return past.sum() + cur.sum() + mask.sum()


def step(past: Dim = PAST, cur: Dim = CUR) -> ModelContract:
    """A cache step whose mask is as long as both other inputs."""
    inputs = {"past": tensor("past", 4), "cur": tensor("cur", 4), "mask": tensor("past+cur")}
    return contract(inputs, past, cur)


def call(exported: Exported, past: int, cur: int, total: int | None = None) -> Tensor:
    """What the program returns at these sizes."""
    mask = torch.zeros(past + cur if total is None else total)
    result: Tensor = exported.program.module()(torch.ones(past, 4), torch.ones(cur, 4), mask)
    return result


@pytest.mark.slow
@pytest.mark.parametrize(("past", "cur"), [(0, 1), (1, 1), (0, 4), (6, 1), (6, 4)])
def test_every_sum_of_the_declared_sizes_is_taken(past: int, cur: int):
    """The first token, with nothing before it, is inside the range; torch alone would begin at 2 + 2."""
    assert call(export(Attend(), step()), past, cur).shape == (cur, 4)


def test_a_mask_of_another_length_is_refused():
    """The program knows how the axes are related."""
    with pytest.raises(AssertionError, match="Guard failed"):
        call(export(Attend(), step()), 2, 2, total=5)


@pytest.mark.slow
def test_the_range_of_a_sum_is_that_of_its_dims():
    """The found range is the declared one, and a length that is written out is reported as specialised."""
    (mask,) = [f for f in _dims(Attend(), step()) if f.axis == "mask[0]"]
    assert (mask.dim, mask.declared, mask.found, mask.specialized) == ("past + cur", (1, 10), (1, 10), False)
    (mask,) = [f for f in _dims(Fixed(), step()) if f.axis == "mask[0]"]
    assert (mask.dim, mask.found, mask.specialized) == ("past + cur", (5, 5), True)


def test_a_sum_with_one_dim_left_is_that_dim():
    """If all dims but one have one size, torch's named Dim can express it, with its guards."""
    exported = export(Attend(), step(cur=Dim(name="cur", min=1, max=4, mode="static", example=2)))
    (mask,) = [axis for axis in exported.axes if axis.leaf == "mask"]
    assert str(mask.size) == "past+2"
    with pytest.raises((AssertionError, RuntimeError)):
        call(exported, 7, 2)


@pytest.mark.slow
@pytest.mark.parametrize("module", [Attend(), Loose()])
def test_onnx_calls_the_axis_by_the_sum(module: nn.Module, tmp_path: Path):
    """The axis is called `past + cur`, whether or not the graph knows the relation."""
    exported = export(module, step())
    graph = torch.onnx.export(exported.program, exported.call.args, dynamo=True, verbose=False).model.graph
    rename_dims(graph, dim_names(exported.axes))
    assert [str(value.shape[0]) for value in graph.inputs] == ["past", "cur", "past + cur"]


def _dims(module: nn.Module, promised: ModelContract) -> tuple[DimFound, ...]:
    exported = export(module, promised)
    return found_dims(exported.program, exported.axes, promised)
