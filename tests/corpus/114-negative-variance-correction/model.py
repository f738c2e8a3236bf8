"""Variance with a negative correction (reported as pytorch/pytorch#161083)."""

import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x.var(1, correction=-1)


def make_model():
    torch.manual_seed(0)
    return M().eval()
