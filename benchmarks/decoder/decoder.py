"""A causal decoder with 355 million parameters, of the size of GPT-2 medium: 1.4 GB of float32 weights."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

WIDTH, HEADS, LAYERS, WORDS, LONGEST = 1024, 16, 24, 50257, 1024


class Block(nn.Module):
    """Attention and a perceptron, each after a normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.project, self.join = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.widen, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """float32[batch, length, WIDTH] -> the same."""
        parts = self.project(self.before(x)).view(*x.shape[:2], 3, HEADS, WIDTH // HEADS)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        seen = scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.join(seen.transpose(1, 2).reshape(x.shape))
        return x + self.narrow(nn.functional.gelu(self.widen(self.between(x))))


class Decoder(nn.Module):
    """Words to the scores of the next word."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LONGEST, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.last = nn.LayerNorm(WIDTH)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """int64[batch, length] -> float32[batch, WORDS]."""
        x = self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        return self.last(x)[:, -1] @ self.words.weight.T


def make() -> nn.Module:
    """Random weights: what is measured does not depend on what was learned."""
    torch.manual_seed(20261130)
    return Decoder().eval()
