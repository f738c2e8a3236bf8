"""The same tensor returned twice, and once through a view (reported as microsoft/onnxscript#2779)."""

import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        y = x + 1
        return y, y, y.view(-1)


def make_model():
    torch.manual_seed(0)
    return M().eval()
