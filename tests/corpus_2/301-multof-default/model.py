import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    """Native resolution 224 takes the stored position table, others an interpolated one."""

    def __init__(s):
        super().__init__()
        s.c = nn.Conv2d(3, 4, 16, stride=16)
        s.pos = nn.Parameter(torch.randn(1, 4, 14, 14))

    def forward(s, x):
        h = s.c(x)
        if x.shape[2] == 224:
            return h + s.pos
        p = F.interpolate(s.pos, size=h.shape[2:], mode="bicubic", antialias=False)
        return h + p * 0.99


def make():
    torch.manual_seed(0)
    return Net().eval()
