"""Activations scaled and cast to int8 without saturation (reported as apache/tvm#19542)."""

import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return (x * 2.0).to(torch.int8)


def make_model():
    torch.manual_seed(0)
    return M().eval()
