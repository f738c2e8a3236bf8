"""Remainder, fmod, floor and truncating division with negative numbers (reported as pytorch/pytorch#64230)."""

import torch
from torch import nn


class M(nn.Module):
    def forward(self, x, y):
        return torch.remainder(x, y), torch.fmod(x, y), x // y, torch.div(x, y, rounding_mode="trunc")


def make_model():
    torch.manual_seed(0)
    return M().eval()
