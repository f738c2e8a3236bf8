import torch
from torch import nn


class Net(nn.Module):
    def __init__(s):
        super().__init__()
        s.l = nn.Linear(8, 4)

    def forward(s, x):
        return s.l(x).relu() * 2 + x[:, :4]


def make():
    torch.manual_seed(0)
    return Net().eval()
