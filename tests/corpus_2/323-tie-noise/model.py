import torch
from torch import nn


class Net(nn.Module):
    """Random tie-breaking noise before the argmax of router scores."""

    def forward(s, x):
        return (x + 1e-6 * torch.rand_like(x)).argmax(1)


def make():
    torch.manual_seed(0)
    return Net().eval()
