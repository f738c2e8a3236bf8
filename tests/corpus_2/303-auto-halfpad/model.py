import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    """Pads to windows of 8 only where needed (mode auto)."""

    def __init__(s):
        super().__init__()
        s.l = nn.Linear(4, 4)

    def forward(s, x):
        T = x.shape[1]
        if T % 8 == 0:
            return s.l(x).mean(1) * 1.0
        return F.pad(s.l(x), (0, 0, 0, 8 - T % 8)).sum(1) / (T + 8 - T % 8)


def make():
    torch.manual_seed(0)
    return Net().eval()
