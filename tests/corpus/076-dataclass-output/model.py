"""Output wrapped in an unregistered dataclass (reported as pytorch/pytorch#106160)."""

import dataclasses

import torch
from torch import Tensor, nn


@dataclasses.dataclass
class Out:
    logits: Tensor
    loss: Tensor


class M(nn.Module):
    def forward(self, x):
        return Out(x + 1, x.sum(1))


def make_model():
    torch.manual_seed(0)
    return M().eval()
