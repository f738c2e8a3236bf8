"""Nested dict, list and tuple outputs with keys not in sorted order (reported as pytorch/pytorch#155091)."""

import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return {"z": x + 1, "a": [x * 2, (x - 1, x.sum())], "m": {"k": x.mean(1)}}


def make_model():
    torch.manual_seed(0)
    return M().eval()
