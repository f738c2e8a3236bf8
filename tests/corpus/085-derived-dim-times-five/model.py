"""Two inputs whose sizes are 5n and n; n=1 is declared but refused (reported as pytorch/pytorch#181097)."""

import torch
from torch import nn


class M(nn.Module):
    def forward(self, x, y):
        p = x.view(5, -1)
        return [p[i] - y for i in range(5)]


def make_model():
    torch.manual_seed(0)
    return M().eval()
