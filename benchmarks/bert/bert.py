"""BERT-base from its configuration: 110 million parameters, no download."""

from __future__ import annotations

import torch
from transformers import BertConfig, BertModel


class Encoder(torch.nn.Module):
    """The encoder's last hidden state and pooled output as a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.bert = BertModel(BertConfig(attn_implementation="eager"))

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> dict[str, torch.Tensor]:
        """`int64[batch, seq]` twice to `float32[batch, seq, 768]` and `float32[batch, 768]`."""
        found = self.bert(input_ids=input_ids, attention_mask=attention_mask)
        return {"hidden": found.last_hidden_state, "pooled": found.pooler_output}


def make_model() -> torch.nn.Module:
    """The model in eval mode, with seeded weights."""
    torch.manual_seed(20261020)
    return Encoder().eval()
