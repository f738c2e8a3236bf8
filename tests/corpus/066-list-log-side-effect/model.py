"""Forward appends intermediates to a Python list (reported as pytorch/pytorch#159787)."""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.bank = []

    def forward(self, x):
        self.bank.append(x.clone())
        return x + 1, torch.tensor(float(len(self.bank)))


def make_model():
    torch.manual_seed(0)
    return M().eval()
