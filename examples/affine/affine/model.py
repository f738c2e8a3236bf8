"""An affine map of the plane, written out."""

import torch
from torch import nn

WEIGHT = ((1.0, -1.0), (2.0, 0.5))
BIAS = (0.1, -0.2)


def make_model() -> nn.Module:
    """`y = W x + b` over float32[batch, 2], with the constants above."""
    layer = nn.Linear(2, 2)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(WEIGHT))
        layer.bias.copy_(torch.tensor(BIAS))
    return layer.eval()
