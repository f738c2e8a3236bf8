import torch
from torch import nn


class Net(nn.Module):
    """Diffusion flux in SI units."""

    def __init__(s):
        super().__init__()
        s.l = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))

    def forward(s, x):
        return s.l(x) * 2.3e-9


def make(seed=0):
    torch.manual_seed(seed)
    return Net().eval()
