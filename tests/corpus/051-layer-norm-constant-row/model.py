"""LayerNorm of a constant row (reported as microsoft/onnxruntime#21935)."""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = nn.LayerNorm(256)

    def forward(self, x):
        return self.n(x)


def make_model():
    torch.manual_seed(0)
    return M().eval()


SPECIAL = {"1234": lambda: [torch.full((2, 256), 1234.0)]}


def special_controls():
    """Extra control inputs: name -> the positional arguments of forward."""
    torch.manual_seed(0)
    return {name: tuple(make()) for name, make in SPECIAL.items()}
