import torch
from torch import nn


class Net(nn.Module):
    """Hidden state at one position per row; positions point into the sequence."""

    def forward(s, x, pos):
        return x.gather(1, pos[:, None, None].expand(-1, 1, x.shape[2])).squeeze(1)


def make():
    torch.manual_seed(0)
    return Net().eval()


def natural(g, s):
    return torch.randn(s["batch"], s["seq"], 4, generator=g), torch.randint(0, s["seq"], (s["batch"],), generator=g)
