"""Convolution, sum and pooling between fake quantisers: the runtime fuses them into integer operators (reported as microsoft/onnxruntime#32132)."""

import torch
import torch.nn.functional as F
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(3, 8, 3, padding=1)
        self.c2 = nn.Conv2d(8, 8, 3, padding=1)

    def q(self, x, scale, zp):
        return torch.fake_quantize_per_tensor_affine(x, scale, zp, 0, 255)

    def qw(self, w):
        return torch.fake_quantize_per_tensor_affine(w, 0.004, 0, -128, 127)

    def forward(self, x):
        x = self.q(x, 1 / 255, 0)
        y = self.q(F.conv2d(x, self.qw(self.c1.weight), self.c1.bias, padding=1).relu(), 0.008, 0)
        z = self.q(F.conv2d(y, self.qw(self.c2.weight), self.c2.bias, padding=1), 0.012, 128)
        s = self.q(y + z, 0.016, 110)
        return self.q(F.avg_pool2d(s, 2), 0.016, 110)


def make_model():
    torch.manual_seed(0)
    return M().eval()
