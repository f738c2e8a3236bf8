"""Batch of zero through an LSTM (reported as microsoft/onnxruntime#8421)."""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.r = nn.LSTM(4, 5, batch_first=True)

    def forward(self, x):
        return self.r(x)[0]


def make_model():
    torch.manual_seed(0)
    return M().eval()
