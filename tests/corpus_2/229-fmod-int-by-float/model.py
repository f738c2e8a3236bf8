"""Integer tensor modulo a float number promotes to float (reported as pytorch/pytorch#48739)."""

import torch
from torch import nn


class M(nn.Module):
    def forward(self, t):
        return torch.fmod(t, 2.5), torch.remainder(t, 2.5), t / 4, t * 0.5


def make_model():
    torch.manual_seed(0)
    return M().eval()
