"""Dropout switched on in inference on purpose (Monte Carlo dropout) (reported as onnx/onnx#4855)."""

import torch
import torch.nn.functional as F
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(6, 8)

    def forward(self, x):
        return F.dropout(self.l(x), p=0.3, training=True)


def make_model():
    torch.manual_seed(0)
    return M().eval()
