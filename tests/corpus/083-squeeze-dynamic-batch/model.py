"""Squeeze() without axis on a dynamic batch: at batch 1 eager drops the axis (reported as ArgoHA/D-FINE-seg#40)."""

import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x.mean(1, keepdim=True).squeeze()


def make_model():
    torch.manual_seed(0)
    return M().eval()
