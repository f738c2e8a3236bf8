"""A model that is another one while it is exported: every check of it must be red."""

from __future__ import annotations

import inspect

import torch


class Honest(torch.nn.Module):
    """float32[batch, 2] -> float32[batch, 2]."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """An affine map and a bend."""
        return torch.relu(self.linear(x)) + 0.5


class Lying(Honest):
    """Adds one where it is exported."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The honest output, or another one."""
        return super().forward(x) + (1.0 if torch.compiler.is_exporting() else 0.0)


class Watching(Honest):
    """Adds one where torch.export is on the stack."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The honest output, or another one."""
        files = [frame.filename for frame in inspect.stack(context=0)]
        return super().forward(x) + (1.0 if any("torch/export" in file for file in files) else 0.0)


def make_honest() -> torch.nn.Module:
    """The model that all others pretend to be."""
    return Honest().eval()


def make_exporting() -> torch.nn.Module:
    """Asks torch whether it is exported."""
    return Lying().eval()


def make_watching() -> torch.nn.Module:
    """Looks at its callers."""
    return Watching().eval()


calls: list[int] = []


def make_counting() -> torch.nn.Module:
    """Another model at every call of the factory."""
    calls.append(1)
    model = Honest().eval()
    with torch.no_grad():
        model.linear.weight += len(calls)
    return model
