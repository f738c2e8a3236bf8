"""Scatter_add with a source larger than the index tensor (allowed by eager) (reported as onnx/onnx#4672)."""

import torch
from torch import nn


class M(nn.Module):
    def forward(self, x, idx, src):
        return x.scatter_add(0, idx, src)


def make_model():
    torch.manual_seed(0)
    return M().eval()
