"""Models that torch.export or the ONNX converter refuses, in a folder of their own that stands for a project."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate, max_pool2d, pad


class Branch(nn.Module):
    """Takes a branch on values."""

    def forward(self, x: Tensor) -> Tensor:
        """float32[n] -> float32[n]."""
        if x.sum() > 0:
            return x + 1
        return x - 1


class Item(nn.Module):
    """Reads a size from values."""

    def forward(self, x: Tensor) -> Tensor:
        """float32[n] -> float32[m]."""
        return x[: int(x.sum().item())]


class WrittenOut(nn.Module):
    """Has the batch size in its code."""

    def forward(self, x: Tensor) -> Tensor:
        """float32[4, n] -> float32[4, n]."""
        return x.reshape(4, -1)


class Identity(nn.Module):
    """Works at every size."""

    def forward(self, x: Tensor) -> Tensor:
        """float32[...] -> float32[...]."""
        return x + 1


class Even(nn.Module):
    """Halves and doubles a height, which must be even."""

    def forward(self, x: Tensor) -> Tensor:
        """float32[n, c, 2*h, w] -> float32[n, c, 2*h, w]."""
        return interpolate(max_pool2d(x, 2), scale_factor=2) + x


class Add(nn.Module):
    """Adds inputs of one shape."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """float32[n], float32[n] -> float32[n]."""
        return x + y


class Twice(nn.Module):
    """Takes a second input twice as long as the first."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """float32[n, c], float32[2*n, c] -> float32[2*n, c]."""
        return torch.cat([x, x]) + y


class Longer(nn.Module):
    """Takes a first input one longer than the second."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """float32[n, t+1], float32[n, t] -> float32[n, t]."""
        return x[:, 1:] + y


class Split(nn.Module):
    """Takes a branch on a size."""

    def forward(self, x: Tensor) -> Tensor:
        """float32[n, c] -> float32[n, c]."""
        return x * 2 if x.shape[0] > 4 else x * 3


@dataclass
class Scores:
    """An output class that torch does not know."""

    logits: Tensor


class Unregistered(nn.Module):
    """Returns a dataclass."""

    def forward(self, x: Tensor) -> Scores:
        """float32[n] -> float32[n]."""
        return Scores(x)


class Numpy(nn.Module):
    """Leaves torch on the way."""

    def forward(self, x: Tensor) -> Tensor:
        """float32[n] -> float32[n]."""
        return torch.from_numpy(x.numpy() * 2)


class Bessel(nn.Module):
    """Uses an operator without ONNX translation."""

    def forward(self, x: Tensor) -> Tensor:
        """float32[n] -> float32[n]."""
        return torch.special.bessel_j0(x)


class Recurrent(nn.Module):
    """A layer that takes a step for each position."""

    def __init__(self, rnn: nn.Module) -> None:
        super().__init__()
        self.rnn = rnn

    def forward(self, x: Tensor) -> Tensor:
        """float32[batch, time, 3] -> float32[batch, time, 4]."""
        hidden: Tensor = self.rnn(x)[0]
        return hidden


class Packed(nn.Module):
    """The same over packed sequences."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(3, 4, batch_first=True)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """float32[batch, time, 3], int64[batch] -> float32[batch, time, 4]."""
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        padded: Tensor = nn.utils.rnn.pad_packed_sequence(self.rnn(packed)[0], batch_first=True)[0]
        return padded


class Decoding(nn.Module):
    """A decoder with a mask, which torch's own layer compares with a causal one."""

    def __init__(self, causal: bool | None = None) -> None:
        super().__init__()
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, batch_first=True), 1)
        self.causal = causal

    def forward(self, x: Tensor) -> Tensor:
        """float32[batch, seq, 8] to the same."""
        mask = torch.triu(torch.full((x.shape[1], x.shape[1]), float("-inf")), 1)
        return self.decoder(x, x, tgt_mask=mask, tgt_is_causal=self.causal)


class Windows(nn.Module):
    """Windows over a length that is padded to a multiple."""

    def forward(self, x: Tensor) -> Tensor:
        """float32[batch, 3, n] to float32[batch, 3, ...]."""
        return pad(x, (0, -x.shape[2] % 4)).unfold(2, 4, 4).mean(3)
