"""Float16 matrix product with a long inner axis: accumulation in half or single (reported as microsoft/onnxruntime#23272)."""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(512, 8, bias=False)
        self.half()

    def forward(self, x):
        return self.l(x)


def make_model():
    torch.manual_seed(0)
    return M().eval()
