"""A tuple output with a None in the middle (reported as pytorch/pytorch#160150)."""

import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x + 1, None, x.sum()


def make_model():
    torch.manual_seed(0)
    return M().eval()
