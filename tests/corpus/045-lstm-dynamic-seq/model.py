"""Two-layer bidirectional LSTM with dynamic sequence length (reported as pytorch/executorch#5176)."""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.r = nn.LSTM(4, 5, num_layers=2, bidirectional=True, batch_first=True)

    def forward(self, x):
        return self.r(x)


def make_model():
    torch.manual_seed(0)
    return M().eval()
