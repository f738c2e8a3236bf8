import torch
from torch import nn


class Net(nn.Module):
    def __init__(s):
        super().__init__()
        s.n = nn.GroupNorm(2, 8)
        s.i = nn.InstanceNorm1d(8)

    def forward(s, x):
        return s.n(x), s.i(x)


def make():
    torch.manual_seed(0)
    return Net().eval()
