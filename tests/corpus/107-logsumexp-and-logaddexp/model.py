"""Log-sum-exp and logaddexp of large numbers (reported as onnx/onnx-mlir#365)."""

import torch
from torch import nn


class M(nn.Module):
    def forward(self, x, y):
        return x.logsumexp(1), torch.logaddexp(x, y)


def make_model():
    torch.manual_seed(0)
    return M().eval()
