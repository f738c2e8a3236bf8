import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    """Mask brought to the size of the features."""

    def forward(s, x, mask):
        m = F.interpolate(mask, size=x.shape[2:], mode="nearest")
        return x * m


def make():
    return Net().eval()
