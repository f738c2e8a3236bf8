"""TransformerEncoder exported while still in train mode (dropout active) (reported as pytorch/pytorch#109532)."""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.1)
        self.t = nn.TransformerEncoder(layer, 2)

    def forward(self, x):
        return self.t(x)


def make_model():
    torch.manual_seed(0)
    return M().train()
