"""Transposed convolution whose output padding is as large as its stride, with dilation (reported as microsoft/onnxruntime#14208)."""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.ConvTranspose2d(1, 3, 2, stride=1, padding=3, dilation=2, output_padding=1)

    def forward(self, x):
        return self.up(x)


def make_model():
    torch.manual_seed(0)
    return M().eval()
