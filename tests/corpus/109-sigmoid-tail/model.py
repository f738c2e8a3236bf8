"""Sigmoid far in the tail comes out slightly below zero; its logarithm shows it (reported as microsoft/onnxruntime#22557)."""

import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        s = torch.sigmoid(x)
        return s, torch.log(s)


def make_model():
    torch.manual_seed(0)
    return M().eval()


SPECIAL = {"-18": lambda: [torch.full((2, 8), -18.0)], "-20..-12": lambda: [torch.linspace(-20, -12, 16).view(2, 8)]}


def special_controls():
    """Extra control inputs: name -> the positional arguments of forward."""
    torch.manual_seed(0)
    return {name: tuple(make()) for name, make in SPECIAL.items()}
