"""Scatter_reduce mean without the old values: translated to plain overwriting (reported as pytorch/pytorch#106373)."""

import torch
from torch import nn


class M(nn.Module):
    def forward(self, x, idx):
        out = torch.zeros(4, 3) + 0 * x[:1, :3]
        return out.scatter_reduce(0, idx, x, reduce="mean", include_self=False)


def make_model():
    torch.manual_seed(0)
    return M().eval()


SPECIAL = {"unique_rows": lambda: [torch.randn(4, 3), torch.arange(4)[:, None].expand(4, 3).contiguous()]}


def special_controls():
    """Extra control inputs: name -> the positional arguments of forward."""
    torch.manual_seed(0)
    return {name: tuple(make()) for name, make in SPECIAL.items()}
