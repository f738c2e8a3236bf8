"""Hand-written attention: masked_fill(-inf) then softmax; fully masked rows are NaN in eager too (reported as open-mmlab/mmdeploy#753)."""

import torch
from torch import nn


class M(nn.Module):
    def forward(self, x, m):
        s = (x @ x.transpose(-1, -2)).masked_fill(~m, float("-inf"))
        return s.softmax(-1) @ x


def make_model():
    torch.manual_seed(0)
    return M().eval()
