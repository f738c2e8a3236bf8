"""Rotary embedding with interleaved halves made by repeat_interleave from position ids (reported as pytorch/pytorch#128505)."""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.register_buffer("inv", 1.0 / 10000 ** (torch.arange(0, dim, 2).float() / dim), persistent=False)

    def forward(self, q, position_ids):
        f = (self.inv[None, :, None].expand(position_ids.shape[0], -1, 1) @ position_ids[:, None, :].float()).transpose(
            1, 2
        )
        emb = torch.repeat_interleave(f, 2, dim=-1)
        cos, sin = emb.cos()[:, None], emb.sin()[:, None]
        rot = torch.stack([-q[..., 1::2], q[..., ::2]], dim=-1).flatten(-2)
        return q * cos + rot * sin


def make_model():
    torch.manual_seed(0)
    return M().eval()
