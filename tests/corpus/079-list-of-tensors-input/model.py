"""A list of tensors as one argument, plus others (reported as pytorch/pytorch#140748)."""

import torch
from torch import nn


class M(nn.Module):
    def forward(self, xs, y, z):
        r = y + z
        for t in xs:
            r = r + t
        return r


def make_model():
    torch.manual_seed(0)
    return M().eval()
