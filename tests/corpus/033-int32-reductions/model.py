"""Sums, products and means of int32 promote to int64 in eager (reported as microsoft/onnxscript#569)."""

import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x.sum(1), x.prod(1), x.cumsum(1), x.float().mean(1), x.max(1)[1]


def make_model():
    torch.manual_seed(0)
    return M().eval()
