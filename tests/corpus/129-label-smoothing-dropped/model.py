"""Cross entropy with label smoothing (and ignored targets): the translation leaves the smoothing out (reported as microsoft/onnxscript#444)."""

import torch
import torch.nn.functional as F
from torch import nn


class M(nn.Module):
    def forward(self, x, t):
        return F.cross_entropy(x, t, ignore_index=1, label_smoothing=0.1)


def make_model():
    torch.manual_seed(0)
    return M().eval()
