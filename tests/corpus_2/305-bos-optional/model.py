import torch
from torch import nn


class Net(nn.Module):
    """Targets may come with a leading BOS: then they are one longer than the memory."""

    def __init__(s):
        super().__init__()
        s.l = nn.Linear(4, 4)

    def forward(s, mem, tgt):
        if tgt.shape[1] == mem.shape[1] + 1:
            tgt = tgt[:, 1:]
        return s.l(tgt).mean(1) + mem.mean(1)


def make():
    torch.manual_seed(0)
    return Net().eval()
