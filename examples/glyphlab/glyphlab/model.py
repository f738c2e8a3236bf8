"""Glyph images in, three class scores out."""

import torch
from torch import Tensor, nn

SEED = 20261020


class MiniGlyphHead(nn.Module):
    """Scores of three glyph classes from one grey channel.

    Takes float32[batch, 1, 24, 24] with values in [0, 1] and returns float32[batch, 3].
    """

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d((1, 1)),
            nn.Flatten(),
            nn.Linear(4, 3),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Unnormalised scores, one row per image."""
        return self.net(x)


def make_model() -> nn.Module:
    """The model as it ships: seeded weights, eval mode. Yours would load a state dict here."""
    torch.manual_seed(SEED)
    return MiniGlyphHead().eval()
