"""Division that folds to a product with one, followed by a cast to the dtype it has (reported as microsoft/onnxruntime#32416)."""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("one", torch.ones(1))

    def forward(self, x):
        y = (1.0 / self.one) * x.float()
        return y.to(torch.float32) * 1, (x / 1.0).float() + 0


def make_model():
    torch.manual_seed(0)
    return M().eval()
