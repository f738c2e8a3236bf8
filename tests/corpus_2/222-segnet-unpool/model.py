"""Segmentation net puts maxima back where they came from (max unpooling, odd image size) (reported as onnx/onnx#2398)."""

import torch
import torch.nn.functional as F
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(1, 4, 3, padding=1)
        self.b = nn.Conv2d(4, 1, 3, padding=1)

    def forward(self, x):
        y = torch.relu(self.a(x))
        p, i = F.max_pool2d(y, 2, 2, return_indices=True)
        return self.b(F.max_unpool2d(p, i, 2, 2, output_size=(y.shape[2], y.shape[3])))


def make_model():
    torch.manual_seed(0)
    return M().eval()
