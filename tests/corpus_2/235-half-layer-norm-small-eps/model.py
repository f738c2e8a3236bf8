"""LayerNorm in half precision with an eps that half precision cannot hold (reported as pytorch/pytorch#86580)."""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(4, eps=1e-8)
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        return self.lin(self.norm(x))


def make_model():
    torch.manual_seed(0)
    return M().half().eval()
