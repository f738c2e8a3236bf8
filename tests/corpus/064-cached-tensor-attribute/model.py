"""A mask cached on self the first time forward runs; export leaves a traced tensor behind (reported as pytorch/pytorch#155114)."""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.mask = None

    def forward(self, x):
        if self.mask is None or self.mask.shape[0] != x.shape[1]:
            self.mask = torch.tril(torch.ones(x.shape[1], x.shape[1]))
        return self.mask @ x


def make_model():
    torch.manual_seed(0)
    return M().eval()
