"""Pairwise distance of two point sets (reported as microsoft/onnxscript#1647)."""

import torch
from torch import nn


class M(nn.Module):
    def forward(self, x, y):
        return torch.cdist(x, y)


def make_model():
    torch.manual_seed(0)
    return M().eval()
