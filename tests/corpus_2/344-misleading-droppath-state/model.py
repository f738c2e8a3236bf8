import torch
from torch import nn


class DropPath(nn.Module):
    """Stochastic depth per sample; forgets to look at self.training."""

    def __init__(s, p=0.05):
        super().__init__()
        s.rate = p

    def forward(s, x):
        keep = 1 - s.rate
        m = torch.rand(x.shape[0], 1) < keep
        return x * m / keep


class Net(nn.Module):
    def __init__(s):
        super().__init__()
        s.l = nn.Linear(8, 8)
        s.d = DropPath()

    def forward(s, x):
        return x + s.d(s.l(x))


def make():
    torch.manual_seed(0)
    return Net().eval()
