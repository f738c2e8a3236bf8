import torch
from torch import nn


class Net(nn.Module):
    """Streaming (one frame) is exported apart; there the model fuses when cache and context are alike."""

    def __init__(s):
        super().__init__()
        s.l = nn.Linear(4, 4)

    def forward(s, x, a, b):
        h = s.l(x).mean(0)
        if x.shape[0] == 1 and a.shape[0] == b.shape[0]:
            return h + s.l(a * b).mean(0)
        return h + s.l(a).mean(0) + s.l(b).mean(0)


def make():
    torch.manual_seed(0)
    return Net().eval()
