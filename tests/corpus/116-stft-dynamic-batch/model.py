"""Spectrogram with dynamic batch (reported as pytorch/pytorch#148687)."""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("w", torch.hann_window(16))

    def forward(self, x):
        s = torch.stft(x, 16, 4, window=self.w, return_complex=True)
        return torch.view_as_real(s).pow(2).sum(-1)


def make_model():
    torch.manual_seed(0)
    return M().eval()
