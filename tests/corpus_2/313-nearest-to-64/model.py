import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(s):
        super().__init__()
        s.l = nn.Linear(4, 4)

    def forward(s, x):
        x = F.interpolate(x, size=64, mode="nearest")
        return s.l(x.transpose(1, 2))


def make():
    torch.manual_seed(0)
    return Net().eval()
