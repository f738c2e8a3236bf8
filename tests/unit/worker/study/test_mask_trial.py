"""Outputs that differ only where a mask is off, and masks of which each position has positions of its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from worker_samples import size

from export_gate.wall.contract import Dim, ModelContract, Output, TensorSpec, make_target
from export_gate.wall.tolerance import resolve_tolerance
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.model.factory import Factory, forward_parameters
from export_gate.worker.model.reference import module_runner
from export_gate.worker.study.laboratory import Laboratory
from export_gate.worker.study.mask_places import Mask, samples, spread
from export_gate.worker.study.mask_trial import mask_trial
from export_gate.worker.study.masks import Masks
from export_gate.worker.study.trials import Bench

N = size("n")
SPEC = TensorSpec(dtype="int64", shape=(N, size("s")), range=(0, 1), mask="keep")
CONTRACT = ModelContract(
    name="m",
    factory="m:make",
    dims=(Dim(name="n", min=1, max=4), Dim(name="s", min=1, max=4)),
    inputs={"x": TensorSpec(dtype="float32", shape=(N, size("s")), range=(-1.0, 1.0)), "keep": SPEC},
    outputs=(Output(name="output", where="all"),),
    targets=(make_target("onnx"),),
)
X = torch.tensor([[1.0, 2.0], [3.0, 4.0]])


def _mean(x: torch.Tensor, keep: torch.Tensor, *, empty: float = 0.0, ones: bool = False) -> torch.Tensor:
    keep = torch.ones_like(keep) if ones else keep
    return torch.where(keep.any(1), (x * keep).sum(1) / keep.sum(1).clamp(min=1), empty)


class Pooled(nn.Module):
    """The mean of what is kept, as `mean` computes it."""

    def __init__(self, mean: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.mean = mean

    def forward(self, x: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
        """See the class."""
        return self.mean(x, keep)


@pytest.mark.parametrize(
    ("artifact", "masks"),
    [
        (partial(_mean, empty=1.0), ("keep",)),
        (partial(_mean, ones=True), ()),
        (lambda x, keep: _mean(x, keep, empty=1.0) + 0.5 * keep.all(), ()),
    ],
)
def test_what_differs_only_where_the_mask_is_off_is_found(
    artifact: Callable[..., torch.Tensor], masks: tuple[str, ...]
):
    """Not if kept places differ as well, or anything does once all is kept."""
    parameters = forward_parameters(Pooled(_mean))
    factory = Factory(make=lambda: Pooled(_mean), reference="m:make", kwargs={}, base=Path())
    laboratory = Laboratory(factory=factory, parameters=parameters, names={})
    bench = Bench(
        contract=CONTRACT,
        run=module_runner(Pooled(artifact), {}),
        laboratory=laboratory,
        tolerance=partial(resolve_tolerance, CONTRACT, "onnx"),
    )
    values = {"x": X, "keep": torch.tensor([[0, 0], [1, 0]])}
    case = ControlCase(name="c", family="normal", group="generated", sizes={"n": 2, "s": 2}, make=lambda: values)
    found = mask_trial(
        bench, Masks(contract=CONTRACT, laboratory=laboratory, axes={"output": ("n",)}), [case], "output"
    )

    assert found.masks == masks


def test_a_square_mask_places_only_tensors_with_both_of_its_axes():
    """In which positions the others attend to says nothing of a position itself, but a query without any is empty."""
    mask = Mask(path="m", spec=SPEC, axes=("b", "s", "s"))
    off = np.array([[[True, True], [False, True]]])
    empty = samples(off.all(-1), mask, ("b", "", "s", ""), (1, 2, 2, 3))
    scores = spread(off, mask, ("b", "", "s", "s"), (1, 2, 2, 2))

    assert spread(off, mask, ("b", "", "s", ""), (1, 2, 2, 3)) is None
    assert empty is not None
    assert empty[0, 1, :, 0].tolist() == [True, False]
    assert scores is not None
    assert np.array_equal(scores[:, 1], off)
