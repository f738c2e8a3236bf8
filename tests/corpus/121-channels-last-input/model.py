"""Channels-last and sliced inputs for a program exported from a contiguous example (reported as pytorch/executorch#21837)."""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(3, 2, 1)

    def forward(self, x):
        return x * 2 + self.c(x).sum()


def make_model():
    torch.manual_seed(0)
    return M().eval()


SPECIAL = {
    "channels_last": lambda: [torch.randn(2, 3, 4, 6).to(memory_format=torch.channels_last)],
    "sliced": lambda: [torch.randn(2, 3, 4, 12)[..., ::2]],
}


def special_controls():
    """Extra control inputs: name -> the positional arguments of forward."""
    torch.manual_seed(0)
    return {name: tuple(make()) for name, make in SPECIAL.items()}
