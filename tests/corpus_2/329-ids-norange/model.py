import torch
from torch import nn


class Net(nn.Module):
    """No range declared for the ids."""

    def __init__(s):
        super().__init__()
        s.e = nn.Embedding(5000, 8)
        s.o = nn.Linear(8, 4)

    def forward(s, ids):
        return s.o(s.e(ids).mean(1))


def make(seed=0):
    torch.manual_seed(0)
    m = Net().eval()
    if seed:
        m.e.weight.data[2:] += torch.randn(4998, 8)
    return m
