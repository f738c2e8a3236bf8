"""Argmax over a row with NaN: eager gives the NaN's place, the runtime another (reported as apache/tvm#19558)."""

import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x.argmax(-1)


def make_model():
    torch.manual_seed(0)
    return M().eval()
