"""Constants that a program compares with and divides by."""

from __future__ import annotations

import torch
from torch import nn

from export_gate.worker.export.thresholds import thresholds
from export_gate.worker.model.thresholds import Threshold


class Deciding(nn.Module):
    """Compares, clips, sorts into bins and divides by constants."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("edges", torch.tensor([0.25, 0.75]))
        self.weight = nn.Parameter(torch.ones(100))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """float32[4, 100] to several."""
        return (
            x > 0.5,
            x.clamp(-1.5, 2.5),
            torch.bucketize(x, self.edges),
            x // 0.02,
            x % 3.0,
            torch.div(x, 4.0, rounding_mode="floor"),
            x / 7.0 + x * 9.0,
            torch.maximum(x, self.weight),
        )


def test_constants_are_read_from_the_program():
    """Bounds and steps are distinguished; plain arithmetic and long tensors are left out."""
    found = thresholds(torch.export.export(Deciding(), (torch.ones(4, 100),)))
    bounds = {threshold.value for threshold in found if not threshold.is_step}
    assert bounds == {0.5, -1.5, 2.5, 0.25, 0.75}
    assert {threshold.value for threshold in found if threshold.is_step} == {0.02, 3.0, 4.0}
    assert Threshold(value=0.5, is_step=False) in found
