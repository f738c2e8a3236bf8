import torch
from torch import nn


class Net(nn.Module):
    def __init__(s):
        super().__init__()

    def forward(s, x):
        return (x // 0.02).long()


def make():
    torch.manual_seed(0)
    return Net().eval()


def natural(g, s):
    return ((torch.randint(0, 3001, (s["n"], 8), generator=g).double() * 0.02).float(),)
