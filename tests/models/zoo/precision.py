"""Element types and magnitudes: double, half, integers and bools out, NaN and infinities in, channels far apart."""

from __future__ import annotations

import torch
from torch import nn

SEED = 20261020


def mlp(dtype: str) -> nn.Module:
    """Three linear layers with SiLU, layer norm and tanh in the given element type."""
    torch.manual_seed(SEED)
    layers = [nn.Linear(8, 32), nn.SiLU(), nn.LayerNorm(32), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 4)]
    return nn.Sequential(*layers).to(getattr(torch, dtype)).eval()


class Decision(nn.Module):
    """Token ids to the class of a lookup table, with what it is sure about: integer and bool outputs, no rounding."""

    def __init__(self) -> None:
        super().__init__()
        self.scores = nn.Embedding(50, 6)
        nn.init.normal_(self.scores.weight)

    def forward(self, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """int64[batch, seq] to int64[batch, seq], bool[batch, seq], int64[batch]."""
        scores = self.scores(ids)
        chosen = scores.argmax(dim=-1)
        return chosen, scores.amax(dim=-1) > 1.0, (chosen == 0).sum(dim=1)


def decision() -> nn.Module:
    """A seeded Decision."""
    torch.manual_seed(SEED)
    return Decision().eval()


class Sensor(nn.Module):
    """Missing readings (NaN) become a learned value, broken ones (infinite) are cut off; NaN marks empty rows."""

    def __init__(self) -> None:
        super().__init__()
        self.missing = nn.Parameter(torch.randn(6))
        self.head = nn.Linear(6, 3)

    def forward(self, readings: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """float32[batch, 6] to float32[batch, 3], float32[batch, 6] that keeps NaN and inf, bool[batch, 6]."""
        absent = torch.isnan(readings)
        filled = torch.where(absent, self.missing, readings).clamp(-10.0, 10.0)
        return self.head(filled), readings * 2.0 + 1.0, absent


def sensor() -> nn.Module:
    """A seeded Sensor."""
    torch.manual_seed(SEED)
    return Sensor().eval()


class Channels(nn.Module):
    """Physical quantities in their own units: pascals beside kilograms of vapour per kilogram of air."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(4, 4, 3, padding=1)
        self.register_buffer("units", torch.tensor([1e5, 3e2, 1.0, 1e-5])[:, None])

    def forward(self, state: torch.Tensor) -> torch.Tensor:
        """float32[batch, 4, levels] to float32[batch, 4, levels], channels 1e10 apart."""
        return torch.tanh(self.conv(state)) * self.units


def channels() -> nn.Module:
    """A seeded Channels."""
    torch.manual_seed(SEED)
    return Channels().eval()


class Normalised(nn.Module):
    """Registered buffers, persistent and not, that forward reads and never writes."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406])[:, None, None])
        self.register_buffer("std", torch.tensor([0.229, 0.224, 0.225])[:, None, None])
        self.register_buffer("window", torch.hann_window(8), persistent=False)
        self.register_buffer("steps", torch.tensor(7))
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """float32[batch, 3, 10, 10] to float32[batch, 4]."""
        x = self.conv((image - self.mean) / self.std)
        return (x * self.window).sum(dim=(2, 3)) / (self.steps + 1)


def normalised() -> nn.Module:
    """A seeded Normalised."""
    torch.manual_seed(SEED)
    return Normalised().eval()
