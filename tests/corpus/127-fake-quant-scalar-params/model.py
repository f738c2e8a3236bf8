"""Fake quantisation with Python numbers and a dynamic batch (the static batch exports): no symbolic-shape rule (reported as pytorch/pytorch#77455)."""

import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return torch.fake_quantize_per_tensor_affine(x, 0.5, 3, -128, 127)


def make_model():
    torch.manual_seed(0)
    return M().eval()


SPECIAL = {"quarters": lambda: [torch.randint(-40, 40, (2, 8)) / 4]}


def special_controls():
    """Extra control inputs: name -> the positional arguments of forward."""
    torch.manual_seed(0)
    return {name: tuple(make()) for name, make in SPECIAL.items()}
