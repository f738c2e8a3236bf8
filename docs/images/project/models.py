"""A text encoder that an export changes: in eval mode, torch's own fast path fills padded positions with zeros."""

import torch


class TextEncoder(torch.nn.Module):
    """A small transformer over padded token ids."""

    def __init__(self) -> None:
        super().__init__()
        layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.embedding = torch.nn.Embedding(64, 16)
        self.layers = torch.nn.TransformerEncoder(layer, 2)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Encode `int64[1, seq]`, in which 0 after the first position is padding, to `float32[1, seq, 16]`."""
        padding = (ids == 0) & (torch.arange(ids.shape[1]) > 0)
        hidden: torch.Tensor = self.layers(self.embedding(ids), src_key_padding_mask=padding)
        return hidden


def make_encoder() -> torch.nn.Module:
    """The encoder with fixed weights."""
    torch.manual_seed(0)
    return TextEncoder().eval()
