"""The values of an input at which a model decides, read from a program and from eager alike."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from export_gate.worker.export.thresholds import thresholds
from export_gate.worker.model.thresholds import EagerThresholds, Threshold


class Deciding(nn.Module):
    """Compares and rounds the input after arithmetic with constants."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("shift", torch.tensor([0.5]))

    def forward(self, x: torch.Tensor, ids: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """float32[4, 8] and int64[4] to several."""
        return (
            (x * 4).round(),
            ((x - self.shift) / 0.25).floor(),
            (3 - x.view(-1)) > 1.0,
            (x * 2 + 1).long(),
            torch.round(x, decimals=1),
            (ids.float() / 10 >= 3).to(torch.int32),
            ids.to(torch.int32),
            (x @ x.mT).round(),
        )


EXPECTED = {
    Threshold(value=0.125, is_step=True, offset=0.0),
    Threshold(value=0.25, is_step=True, offset=0.5),
    Threshold(value=2.0, is_step=False),
    Threshold(value=0.5, is_step=True, offset=-0.5),
    Threshold(value=0.05, is_step=True),
    Threshold(value=30.0, is_step=False),
}
ARGUMENTS = (torch.ones(4, 8), torch.arange(4))


@pytest.mark.parametrize("source", ["program", "eager"])
def test_a_decision_is_found_at_the_value_of_the_input(source: str):
    """Products and sums with constants are followed back; what depends on all elements is left out."""
    model = Deciding()
    if source == "program":
        found = thresholds(torch.export.export(model, ARGUMENTS))
    else:
        watch = EagerThresholds([*model.parameters(), *model.buffers()], ARGUMENTS)
        with watch:
            model(*ARGUMENTS)
        found = watch.found

    # -0.0 equals 0.0, so that a set compares them as one.
    assert set(found) == EXPECTED


def test_constants_that_forward_makes_are_constants():
    """A tensor of numbers alone does not depend on an input."""
    x = torch.ones(4, 8)
    watch = EagerThresholds([], [x])
    with watch:
        torch.maximum(x, torch.tensor(0.25))
        torch.bucketize(x, torch.linspace(0, 1, 3))
        torch.gt(x, x.mean())

    assert {each.value for each in watch.found} == {0.25, 0.0, 0.5, 1.0}
