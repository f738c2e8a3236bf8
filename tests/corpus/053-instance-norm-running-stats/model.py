"""InstanceNorm1d with track_running_stats in eval, dynamic batch (reported as pytorch/pytorch#128501)."""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = nn.InstanceNorm1d(3, track_running_stats=True)
        self.n.running_mean.add_(0.5)
        self.n.running_var.mul_(3.0)

    def forward(self, x):
        return self.n(x)


def make_model():
    torch.manual_seed(0)
    return M().eval()
