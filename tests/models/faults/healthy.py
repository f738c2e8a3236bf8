"""A small model that verifies on every target; the base of the faulty ones."""

from __future__ import annotations

import torch


class Small(torch.nn.Module):
    """float32[batch, 2] -> float32[batch, 2]."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """An affine map and a bend."""
        return torch.relu(self.linear(x))


def make() -> torch.nn.Module:
    """The model, ready to run."""
    return Small().eval()
