"""An input that the result does not depend on (reported as pytorch/pytorch#136179)."""

import torch
from torch import nn


class M(nn.Module):
    def forward(self, x, unused):
        return x * 2


def make_model():
    torch.manual_seed(0)
    return M().eval()
