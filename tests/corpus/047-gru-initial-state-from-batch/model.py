"""GRU whose initial state is zeros(1, batch, hidden) made in forward (reported as pytorch/pytorch#126339)."""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.r = nn.GRU(4, 5, batch_first=True)

    def forward(self, x):
        return self.r(x, torch.zeros(1, x.shape[0], 5))


def make_model():
    torch.manual_seed(0)
    return M().eval()
