"""Scale factor resize with odd dynamic sizes, output size floor(scale*in), align_corners both ways (reported as pytorch/pytorch#10446)."""

import torch
import torch.nn.functional as F
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return F.interpolate(x, scale_factor=1.7, mode="bilinear", align_corners=False), F.interpolate(
            x, size=(7, 7), mode="bilinear", align_corners=True
        )


def make_model():
    torch.manual_seed(0)
    return M().eval()
