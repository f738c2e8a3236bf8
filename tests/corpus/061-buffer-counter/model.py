"""A buffer updated in forward and read on the next call (reported as pytorch/pytorch#60828)."""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("n", torch.zeros(()))

    def forward(self, x):
        self.n.add_(1.0)
        return x + self.n


def make_model():
    torch.manual_seed(0)
    return M().eval()
