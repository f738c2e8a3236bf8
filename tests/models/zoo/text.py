"""Transformers as engineers export them: from a config, seeded, small, with token ids and padding masks."""

from __future__ import annotations

import math

import torch
from torch import nn

SEED = 20261020
VOCABULARY = 99


def tiny_bert() -> nn.Module:
    """BERT, two layers, through Hugging Face's own forward and output class."""
    from transformers import BertConfig, BertModel

    torch.manual_seed(SEED)
    config = BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    return BertModel(config).eval()


class Logits(nn.Module):
    """A causal language model's logits alone."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """int64[batch, seq] to float32[batch, seq, vocabulary]."""
        return self.model(input_ids=input_ids, attention_mask=attention_mask, use_cache=False).logits


def tiny_llama() -> nn.Module:
    """Llama, two layers, grouped-query attention, rotary positions, RMS norm."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(SEED)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    return Logits(LlamaForCausalLM(config)).eval()


class Hidden(nn.Module):
    """An encoder's last hidden state alone."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """int64[batch, seq] to float32[batch, seq, width]."""
        return self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state


def tiny_t5() -> nn.Module:
    """T5's encoder: relative position buckets, RMS norm, no scaling of the scores.

    Attention is written out: torch 2.13 records a view of the fused kernel's output that its decomposition cannot take.
    """
    from transformers import T5Config, T5EncoderModel

    torch.manual_seed(SEED)
    sizes = {"vocab_size": VOCABULARY, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
    config = T5Config(**sizes, attn_implementation="eager")
    return Hidden(T5EncoderModel(config)).eval()


class SpeechEncoder(nn.Module):
    """Whisper's shape: two convolutions over time, sinusoidal positions, pre-norm transformer layers."""

    def __init__(self, mels: int = 16, width: int = 32, longest: int = 64) -> None:
        super().__init__()
        self.narrow = nn.Conv1d(mels, width, 3, padding=1)
        self.halve = nn.Conv1d(width, width, 3, stride=2, padding=1)
        layer = nn.TransformerEncoderLayer(width, 4, 64, activation="gelu", batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.register_buffer("positions", sinusoids(longest, width))

    def forward(self, mel: torch.Tensor) -> torch.Tensor:
        """float32[batch, 16, 2*seq] to float32[batch, seq, 32]."""
        x = nn.functional.gelu(self.narrow(mel))
        x = nn.functional.gelu(self.halve(x)).transpose(1, 2)
        x = x + self.positions[: x.shape[1]]
        return self.norm(self.layers(x))


def sinusoids(length: int, width: int) -> torch.Tensor:
    """float32[length, width] of sines beside cosines, as in Whisper."""
    rates = torch.exp(-math.log(10000.0) / (width // 2 - 1) * torch.arange(width // 2))
    angles = torch.arange(length)[:, None] * rates[None, :]
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def speech_encoder() -> nn.Module:
    """A tiny SpeechEncoder."""
    torch.manual_seed(SEED)
    return SpeechEncoder().eval()


class SequenceClassifier(nn.Module):
    """A bidirectional LSTM over a fixed number of steps and a linear layer over its last one."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(6, 16, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(32, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """float32[batch, 12, 6] to float32[batch, 5]."""
        steps, _ = self.lstm(x)
        return self.head(steps[:, -1])


def lstm_classifier() -> nn.Module:
    """A seeded SequenceClassifier."""
    torch.manual_seed(SEED)
    return SequenceClassifier().eval()
