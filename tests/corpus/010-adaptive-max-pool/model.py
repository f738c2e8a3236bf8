"""Adaptive max pooling has no ONNX translation (reported as pytorch/pytorch#183439)."""

import torch
import torch.nn.functional as F
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return F.adaptive_max_pool2d(x, (3, 2))


def make_model():
    torch.manual_seed(0)
    return M().eval()
