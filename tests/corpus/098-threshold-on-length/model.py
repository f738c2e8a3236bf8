"""Another path for long inputs (if length > 6) (reported as pytorch/pytorch#119180)."""

import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        if x.shape[1] > 6:
            return x[:, -6:].sum(1)
        return x.sum(1) * 2


def make_model():
    torch.manual_seed(0)
    return M().eval()
