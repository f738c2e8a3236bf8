"""Ways to call a model: separate, automatic and derived sizes, keyword-only and constant arguments, dicts."""

from __future__ import annotations

import torch
from torch import nn

SEED = 20261020


class Pooled(nn.Module):
    """Linear layers around a mean over the batch, so that a batch of one is a size of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """float32[batch, 4] to float32[batch, 3]."""
        y = self.first(x)
        if x.shape[0] == 1:
            return self.second(y)
        return self.second(y - y.mean(dim=0, keepdim=True))


def pooled() -> nn.Module:
    """A seeded Pooled."""
    torch.manual_seed(SEED)
    return Pooled().eval()


class Smoothed(nn.Module):
    """A moving average over time and a projection."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(5, 7)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """float32[batch, time, 5] to float32[batch, time, 7]."""
        padded = nn.functional.pad(x.transpose(1, 2), (1, 1))
        return self.project(nn.functional.avg_pool1d(padded, 3, stride=1).transpose(1, 2))


def smoothed() -> nn.Module:
    """A seeded Smoothed."""
    torch.manual_seed(SEED)
    return Smoothed().eval()


class Interleaved(nn.Module):
    """Tokens with a separator around each: twice as many positions and one more, paired up for attention."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.mix = nn.Linear(8, 8)

    def forward(self, tokens: torch.Tensor, spaced: torch.Tensor) -> torch.Tensor:
        """int64[batch, seq] and float32[batch, 2*seq+1, 8] to float32[batch, 2*seq+1, 8]."""
        queries = self.mix(spaced)
        scores = queries @ self.embed(tokens).transpose(1, 2) * 8**-0.5
        return scores.softmax(dim=-1) @ self.embed(tokens)


def interleaved() -> nn.Module:
    """A seeded Interleaved."""
    torch.manual_seed(SEED)
    return Interleaved().eval()


class Keywords(nn.Module):
    """A keyword-only tensor, constants, and a dict of tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right, self.bias = nn.Linear(4, 6), nn.Linear(3, 6), nn.Linear(2, 6)

    def forward(
        self, parts: dict[str, torch.Tensor], scale: float, *, mode: str = "sum", bias: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        """float32[batch, 4], float32[batch, 3] and float32[batch, 2] to two of float32[batch, 6]."""
        left, right = self.left(parts["left"]), self.right(parts["right"])
        joined = left + right if mode == "sum" else left * right
        return {"joined": joined * scale + self.bias(bias), "gate": torch.sigmoid(right)}


def keywords() -> nn.Module:
    """A seeded Keywords."""
    torch.manual_seed(SEED)
    return Keywords().eval()


class Unnamed(nn.Module):
    """A tuple of outputs that the contract gives names."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk, self.policy, self.value = nn.Linear(6, 16), nn.Linear(16, 4), nn.Linear(16, 1)

    def forward(self, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """float32[batch, 6] to float32[batch, 4] and float32[batch]."""
        hidden = torch.relu(self.trunk(state))
        return self.policy(hidden).log_softmax(dim=-1), self.value(hidden).squeeze(-1)


def unnamed() -> nn.Module:
    """A seeded Unnamed."""
    torch.manual_seed(SEED)
    return Unnamed().eval()
