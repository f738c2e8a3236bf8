"""Embedding plus TransformerEncoder with dynamic batch and length (reported as pytorch/pytorch#110557)."""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(15, 8)
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
        self.t = nn.TransformerEncoder(layer, 2)

    def forward(self, ids):
        return self.t(self.e(ids))


def make_model():
    torch.manual_seed(0)
    return M().eval()
