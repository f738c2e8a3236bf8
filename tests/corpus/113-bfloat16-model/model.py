"""Bfloat16 weights and activations (reported as pytorch/pytorch#153998)."""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(16, 32)
        self.n = nn.LayerNorm(32)
        self.bfloat16()

    def forward(self, x):
        return self.n(self.l(x.to(torch.bfloat16))).float()


def make_model():
    torch.manual_seed(0)
    return M().eval()
