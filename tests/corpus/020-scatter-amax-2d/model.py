"""Scatter_reduce amax on two-dimensional integer data (reported as pytorch/pytorch#152419)."""

import torch
from torch import nn


class M(nn.Module):
    def forward(self, x, idx, src):
        return x.scatter_reduce(0, idx, src, reduce="amax")


def make_model():
    torch.manual_seed(0)
    return M().eval()
