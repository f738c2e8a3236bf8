"""Dropout layers in eval must vanish (reported as pytorch/pytorch#156542)."""

import torch
import torch.nn.functional as F
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(6, 8)
        self.d = nn.Dropout(0.5)

    def forward(self, x):
        return self.d(F.relu(self.l(x)))


def make_model():
    torch.manual_seed(0)
    return M().eval()
