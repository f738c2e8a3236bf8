"""Plain tanh RNN with dynamic length (reported as pytorch/pytorch#126339)."""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.r = nn.RNN(4, 5, batch_first=True)

    def forward(self, x):
        return self.r(x)[0]


def make_model():
    torch.manual_seed(0)
    return M().eval()
