"""Declared length range exceeds the learned position table (reported as pytorch/TensorRT#2922)."""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(20, 4)
        self.p = nn.Embedding(16, 4)

    def forward(self, ids):
        return self.e(ids) + self.p(torch.arange(ids.shape[1]))


def make_model():
    torch.manual_seed(0)
    return M().eval()
