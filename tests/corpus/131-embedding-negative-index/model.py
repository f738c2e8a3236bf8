"""Token ids outside the table: eager refuses -1, Gather counts it from the end (reported as microsoft/onnxruntime#1533)."""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(10, 4)

    def forward(self, ids):
        return self.e(ids)


def make_model():
    torch.manual_seed(0)
    return M().eval()
