"""Convolution over images of 0..255: differences are rounding only (no false alarm wanted) (reported as microsoft/onnxruntime#18946)."""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(3, 8, 3)

    def forward(self, x):
        return self.c(x)


def make_model():
    torch.manual_seed(0)
    return M().eval()
