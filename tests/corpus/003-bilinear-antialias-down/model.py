"""Antialiased bilinear resize keeps out-of-image samples, eager drops and renormalises them (reported as pytorch/pytorch#183546)."""

import torch
import torch.nn.functional as F
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return F.interpolate(x, size=(5, 7), mode="bilinear", antialias=True)


def make_model():
    torch.manual_seed(0)
    return M().eval()
