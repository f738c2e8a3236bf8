"""Slice ends taken from an integer tensor (reported as pytorch/pytorch#119321)."""

import torch
from torch import nn


class M(nn.Module):
    def forward(self, x, n):
        k = n.item()
        return x[:k].sum(0)


def make_model():
    torch.manual_seed(0)
    return M().eval()
