"""Network of lazy layers that nobody has run before it is exported (reported as pytorch/pytorch#150404)."""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.LazyLinear(10)
        self.fc2 = nn.LazyLinear(2)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


def make_model():
    torch.manual_seed(0)
    return M().eval()
