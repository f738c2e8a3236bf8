"""GroupNorm of data with a large mean (reported as pytorch/pytorch#40302)."""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = nn.GroupNorm(2, 4)

    def forward(self, x):
        return self.n(x)


def make_model():
    torch.manual_seed(0)
    return M().eval()
