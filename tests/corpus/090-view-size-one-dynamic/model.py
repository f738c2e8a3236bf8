"""View(x.size(1), -1) with every dim dynamic (reported as pytorch/pytorch#126607)."""

import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return torch.softmax(x.view(x.size(1), -1), dim=0)


def make_model():
    torch.manual_seed(0)
    return M().eval()
