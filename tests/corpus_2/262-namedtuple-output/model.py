"""Mean and log-variance returned as a NamedTuple (reported as pytorch/pytorch#109460)."""

from typing import NamedTuple

import torch
from torch import nn


class Out(NamedTuple):
    mean: torch.Tensor
    logvar: torch.Tensor


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(6, 6)

    def forward(self, x):
        m, v = self.lin(x).chunk(2, -1)
        return Out(m, v)


def make_model():
    torch.manual_seed(0)
    return M().eval()
