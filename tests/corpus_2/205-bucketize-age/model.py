"""Continuous feature sorted into equal bins whose index picks an embedding (reported as pytorch/pytorch#148098)."""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("edges", torch.linspace(0, 1, 11))
        self.emb = nn.Embedding(12, 4)

    def forward(self, x):
        b = torch.bucketize(x, self.edges)
        return self.emb(b), b


def make_model():
    torch.manual_seed(0)
    return M().eval()
