"""Three-operand einsum with an ellipsis over a dynamic batch (reported as pytorch/pytorch#124625)."""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(2, 3, 5))
        self.b = nn.Parameter(torch.randn(5, 4, 4))

    def forward(self, x):
        return torch.einsum("yxa,aij,...xj->...yi", self.w, self.b, x)


def make_model():
    torch.manual_seed(0)
    return M().eval()
