"""Layer norm written out with the sample standard deviation and eps outside of the root (reported as microsoft/onnxruntime#4293)."""

import torch
from torch import nn


class LN(nn.Module):
    def __init__(self, n, eps=1e-6):
        super().__init__()
        self.a = nn.Parameter(torch.rand(n) + 0.5)
        self.b = nn.Parameter(torch.rand(n))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        std = x.std(-1, keepdim=True)
        return self.a * (x - mean) / (std + self.eps) + self.b


class RMS(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.w = nn.Parameter(torch.rand(n))

    def forward(self, x):
        return self.w * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = LN(16), RMS(16)
        self.lin = nn.Linear(16, 16)

    def forward(self, x):
        h = x + self.lin(self.n1(x))
        return self.n2(h + x)


def make_model():
    torch.manual_seed(0)
    return M().eval()
