import math

import torch
from torch import nn


class Net(nn.Module):
    def __init__(s):
        super().__init__()

    def forward(s, x):
        return x % (2 * math.pi)


def make():
    torch.manual_seed(0)
    return Net().eval()


def natural(g, s):
    return ((torch.randint(-63, 64, (s["n"], 8), generator=g).double() * (math.pi / 4)).float(),)
