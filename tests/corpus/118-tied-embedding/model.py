"""Embedding weight tied to the output layer (reported as pytorch/pytorch#188346)."""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(20, 6)
        self.o = nn.Linear(6, 20, bias=False)
        self.o.weight = self.e.weight

    def forward(self, ids):
        return self.o(self.e(ids))


def make_model():
    torch.manual_seed(0)
    return M().eval()
