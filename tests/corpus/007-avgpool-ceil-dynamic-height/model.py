"""Ceil_mode pooling of images of dynamic height: a parity guard the declared range does not have (reported as pytorch/pytorch#101397)."""

import torch
import torch.nn.functional as F
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=True)


def make_model():
    torch.manual_seed(0)
    return M().eval()
