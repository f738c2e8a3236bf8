"""Remainder of floats written as a - floor(a/b)*b loses everything when the quotient is large (reported as microsoft/onnxscript#2727)."""

import math

import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return torch.remainder(x, 0.1), torch.remainder(x, math.pi)


def make_model():
    torch.manual_seed(0)
    return M().eval()
