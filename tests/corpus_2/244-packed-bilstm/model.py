"""Text encoder that sorts by length, packs, runs a bidirectional LSTM, unpacks and restores the order (reported as pytorch/pytorch#41774)."""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(6, 5, batch_first=True, bidirectional=True)

    def forward(self, inputs, lengths):
        order = torch.argsort(lengths, descending=True)
        back = torch.argsort(order)
        packed = nn.utils.rnn.pack_padded_sequence(inputs[order], lengths[order], batch_first=True)
        out, _ = self.rnn(packed)
        out, _ = nn.utils.rnn.pad_packed_sequence(out, batch_first=True, total_length=inputs.shape[1])
        return out[back]


def make_model():
    torch.manual_seed(0)
    return M().eval()
