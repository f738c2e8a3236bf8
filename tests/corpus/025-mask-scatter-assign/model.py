"""Assignment through a boolean mask and through a middle index (reported as microsoft/onnxscript#1298)."""

import torch
from torch import nn


class M(nn.Module):
    def forward(self, x, m):
        y = x.clone()
        y[m] = -1.0
        z = x.clone()
        z[:, [2, 0]] = 7.0
        return y, z


def make_model():
    torch.manual_seed(0)
    return M().eval()
