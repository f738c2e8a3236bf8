"""Tiny language models of transformers, each with a fault that only its export has: it attends to padding."""

# ruff: noqa: ANN001, ANN204, D102, D103 - models as their authors might have written them

import torch
from torch import nn

SMALL = {
    "vocab_size": 50, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
    "max_position_embeddings": 64,
}  # fmt: skip


class Padded(nn.Module):
    """The hidden states for tokens with padding."""

    def __init__(self, model, faulty):
        super().__init__()
        self.model, self.faulty = model, faulty

    def forward(self, input_ids, attention_mask):
        if self.faulty and torch.compiler.is_exporting():
            attention_mask = torch.ones_like(attention_mask)
        return self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state


def bert():
    from transformers import BertConfig, BertModel

    return BertModel(BertConfig(**SMALL))


def mistral():
    from transformers import MistralConfig, MistralModel

    return MistralModel(MistralConfig(**SMALL, num_key_value_heads=1, sliding_window=4, use_cache=False))


def modernbert():
    from transformers import ModernBertConfig, ModernBertModel

    config = ModernBertConfig(**SMALL, local_attention=4, pad_token_id=0, attn_implementation="sdpa")
    return ModernBertModel(config)


def make(name, faulty=False):
    torch.manual_seed(0)
    return Padded(globals()[name](), faulty).eval()
