"""Bilinear resize down to 1x1 used a coordinate mode with a special case at size 1 (reported as pytorch/pytorch#183523)."""

import torch
import torch.nn.functional as F
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return F.interpolate(x, size=(1, 1), mode="bilinear", align_corners=False)


def make_model():
    torch.manual_seed(0)
    return M().eval()
