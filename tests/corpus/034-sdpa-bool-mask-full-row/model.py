"""Boolean attention mask with a query that may attend nothing: eager gives zeros (reported as microsoft/onnxscript#2479)."""

import torch
import torch.nn.functional as F
from torch import nn


class M(nn.Module):
    def forward(self, q, k, v, m):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=m)


def make_model():
    torch.manual_seed(0)
    return M().eval()
