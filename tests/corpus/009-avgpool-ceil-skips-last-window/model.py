"""Ceil_mode pooling: eager drops a last window that starts in the padding, ONNX does not (reported as pytorch/pytorch#131272)."""

import torch
import torch.nn.functional as F
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return F.avg_pool2d(x, 3, 3, 1, ceil_mode=True), F.max_pool2d(x, 3, 3, 1, ceil_mode=True)


def make_model():
    torch.manual_seed(0)
    return M().eval()
