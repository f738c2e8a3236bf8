import torch
from torch import nn


class Net(nn.Module):
    """Cross-correlation of a signal with a shorter template; doubles when lengths match by a factor of 3."""

    def forward(s, x, t):
        n = x.shape[0]
        m = t.shape[0]
        y = torch.cat([x, t]).cumsum(0)
        if n // m == 3:
            y = y * 2
        return y


def make():
    torch.manual_seed(0)
    return Net().eval()
