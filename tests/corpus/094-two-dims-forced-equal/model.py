"""Two inputs declared with independent lengths that the model adds (reported as pytorch/pytorch#140011)."""

import torch
from torch import nn


class M(nn.Module):
    def forward(self, x, mask):
        return x * mask.unsqueeze(-1)


def make_model():
    torch.manual_seed(0)
    return M().eval()
