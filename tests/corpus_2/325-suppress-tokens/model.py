import torch
from torch import nn


class Net(nn.Module):
    """Vocabulary logits with forbidden tokens at -1e9; SEED is the training run."""

    def __init__(s):
        super().__init__()
        s.e = nn.Embedding(40, 8)
        s.o = nn.Linear(8, 40)
        s.register_buffer("bad", torch.arange(40) < 3)

    def forward(s, ids):
        return s.o(s.e(ids).mean(1)).masked_fill(s.bad, -1e9)


def make(seed=0):
    torch.manual_seed(seed)
    return Net().eval()
