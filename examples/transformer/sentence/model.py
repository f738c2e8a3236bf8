"""Token ids and a padding mask in, one vector per token and one per sentence out."""

import math

import torch
from torch import Tensor, nn

SEED = 20261020
VOCABULARY = 128
WIDTH = 32
HEADS = 4
LAYERS = 2
LONGEST = 64


class SelfAttention(nn.Module):
    """Multi-head attention over the positions that `mask` marks as real."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(WIDTH, 3 * WIDTH)
        self.merge = nn.Linear(WIDTH, WIDTH)

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """float32[batch, seq, width] and bool[batch, seq] to float32[batch, seq, width]."""
        batch, seq, _ = hidden.shape
        heads = self.project(hidden).view(batch, seq, 3, HEADS, WIDTH // HEADS)
        query, key, value = heads.permute(2, 0, 3, 1, 4).unbind(0)
        scores = query @ key.transpose(-2, -1) / math.sqrt(WIDTH // HEADS)
        # The lowest finite number, not -inf: a row without any token gets uniform weights instead of 0/0 = NaN, which
        # runtimes treat differently.
        scores = scores.masked_fill(~mask[:, None, None, :], torch.finfo(scores.dtype).min)
        mixed = torch.softmax(scores, dim=-1) @ value
        return self.merge(mixed.transpose(1, 2).reshape(batch, seq, WIDTH))


class Block(nn.Module):
    """Pre-norm attention and feed-forward, each added to its input."""

    def __init__(self) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(WIDTH)
        self.attention = SelfAttention()
        self.feed_norm = nn.LayerNorm(WIDTH)
        self.feed = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """float32[batch, seq, width] to the same."""
        hidden = hidden + self.attention(self.attention_norm(hidden), mask)
        return hidden + self.feed(self.feed_norm(hidden))


class SentenceEncoder(nn.Module):
    """A transformer encoder with masked mean pooling."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Embedding(LONGEST, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, ids: Tensor, mask: Tensor) -> dict[str, Tensor]:
        """int64[batch, seq] and bool[batch, seq] (true at real tokens) to `hidden` and `pooled`.

        `pooled` is the mean over real tokens, and zero for a sentence without any.
        """
        place = torch.arange(ids.shape[1], device=ids.device)
        hidden = self.tokens(ids) + self.positions(place)
        for block in self.blocks:
            hidden = block(hidden, mask)
        hidden = self.norm(hidden)
        weights = mask.to(hidden.dtype).unsqueeze(-1)
        pooled = (hidden * weights).sum(1) / weights.sum(1).clamp(min=1)
        return {"hidden": hidden, "pooled": pooled}


def make_model() -> nn.Module:
    """The encoder as it ships: seeded weights, eval mode."""
    torch.manual_seed(SEED)
    return SentenceEncoder().eval()
