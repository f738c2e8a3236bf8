"""An int attribute counted up in forward and used in the result (reported as pytorch/pytorch#106217)."""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.k = 0

    def forward(self, x):
        self.k += 1
        return x * self.k


def make_model():
    torch.manual_seed(0)
    return M().eval()
