"""Example taken at the maximum of the range: slice assignment makes the dim static (reported as pytorch/pytorch#146046)."""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("cache", torch.zeros(10))

    def forward(self, x):
        c = self.cache.clone()
        c[: x.shape[0]] = x
        return c


def make_model():
    torch.manual_seed(0)
    return M().eval()
