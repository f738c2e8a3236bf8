"""TransformerEncoder in eval uses a nested-tensor fast path that zeroes padded positions; export takes the other path (reported as pytorch/pytorch#86120)."""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.1)
        self.t = nn.TransformerEncoder(layer, 2)

    def forward(self, x, pad):
        return self.t(x, src_key_padding_mask=pad)


def make_model():
    torch.manual_seed(0)
    return M().eval()


SPECIAL = {
    "right_padded": lambda: [torch.randn(2, 6, 8), torch.tensor([[False] * 6, [False] * 4 + [True] * 2])],
    "one_hole": lambda: [torch.randn(2, 6, 8), torch.tensor([[False] * 6, [False, True] + [False] * 4])],
}


def special_controls():
    """Extra control inputs: name -> the positional arguments of forward."""
    torch.manual_seed(0)
    return {name: tuple(make()) for name, make in SPECIAL.items()}
