"""Sort with values and indices (reported as pytorch/pytorch#127831)."""

import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        v, i = torch.sort(x, dim=-1, descending=True)
        return v, i


def make_model():
    torch.manual_seed(0)
    return M().eval()
