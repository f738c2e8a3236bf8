"""Lagged copies of a series by torch.roll along the last axis, lag sometimes longer than the series (reported as microsoft/onnxscript#3024)."""

import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        lags = [torch.roll(x, shifts=k, dims=-1) for k in (1, 5, -2)]
        return torch.stack(lags, dim=1)


def make_model():
    torch.manual_seed(0)
    return M().eval()
