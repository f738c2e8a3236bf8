"""Small models whose callers need more than shapes and ranges; some have a fault that only their export has."""

# ruff: noqa: ANN001, ANN204, D102 - models as their authors might have written them

import numpy as np
import torch
from torch import nn
from torch.nn.functional import unfold

EXPORTING = torch.compiler.is_exporting


class Seeded(nn.Module):
    """Has the same weights each time."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)


class PackedTagger(Seeded):
    """A bidirectional LSTM over packed sequences; its ONNX file has the lengths as an input of the LSTM."""

    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(3, 4, batch_first=True, bidirectional=True)

    def forward(self, x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        states, _ = self.rnn(packed)
        found, _ = nn.utils.rnn.pad_packed_sequence(states, batch_first=True, total_length=x.shape[1])
        return found


class Bags(Seeded):
    """Weighted sums of embeddings, each bag from its offset on."""

    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(30, 4, mode="sum")

    def forward(self, words, offsets, weights):
        return self.bag(words, offsets, per_sample_weights=weights)


class Suppression(nn.Module):
    """Keeps a box unless one with a higher score overlaps it by half; boxes come ordered by score."""

    def forward(self, boxes, scores):
        low, high = boxes[:, :2], boxes[:, 2:]
        shared = (torch.minimum(high[:, None], high) - torch.maximum(low[:, None], low)).clamp(min=0).prod(-1)
        area = (high - low).prod(-1)
        overlaps = 2 * shared > area[:, None] + area - shared
        before = torch.ones_like(overlaps).tril(-1)
        suppressed = (overlaps & before).any(1)
        return {"keep": ~suppressed, "scores": torch.where(suppressed, 0.0, scores)}


def detections(sizes, rng):
    """Boxes with their corners in order, on a grid so that no overlap is a matter of rounding; scores in order."""
    corner = rng.integers(0, 20, size=(sizes["boxes"], 2))
    extent = rng.integers(1, 20, size=(sizes["boxes"], 2))
    scores = np.sort(rng.uniform(0, 1, size=sizes["boxes"]))[::-1]
    return {
        "boxes": np.concatenate([corner, corner + extent], axis=1).astype(np.float32),
        "scores": scores.astype(np.float32),
    }


class MessagePassing(Seeded):
    """Two rounds of mean aggregation over directed edges."""

    def __init__(self):
        super().__init__()
        self.own, self.other = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x, edge_index, edge_weight):
        source, target = edge_index
        for _ in range(2):
            sent = self.other(x)[source] * edge_weight[:, None]
            total = torch.zeros_like(x).index_add(0, target, sent)
            count = torch.zeros_like(x[:, :1]).index_add(0, target, torch.ones_like(edge_weight)[:, None])
            x = torch.relu(self.own(x) + total / count.clamp(min=1))
        return x


class Flow(Seeded):
    """Motion between two images from the correlation of their features, refined twice."""

    def __init__(self):
        super().__init__()
        self.features = nn.Conv2d(3, 6, 8, stride=8)
        self.update = nn.Conv2d(9 + 2, 2, 3, padding=1)

    def forward(self, first, second):
        one, two = self.features(first), self.features(second)
        batch, channels, height, width = one.shape
        around = unfold(two, 3, padding=1).view(batch, channels, 9, height, width)
        flow = torch.zeros_like(one[:, :2])
        for _ in range(2):
            correlation = (one[:, :, None] * around).sum(1) / channels**0.5
            flow = flow + torch.tanh(self.update(torch.cat([correlation, flow], 1)))
        return flow


class Detector(Seeded):
    """A detection head as training frameworks return it: the losses are None without targets."""

    faulty = False

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Conv2d(3, 4, 3, stride=2, padding=1), nn.Conv2d(4, 5, 1)

    def forward(self, images):
        found = self.head(torch.relu(self.body(images))).flatten(2).transpose(1, 2)
        lost = found.sum() if self.faulty and EXPORTING() else None
        return {"loss": lost, "boxes": found[..., :4].sigmoid(), "logits": found[..., 4]}


class Padded(Seeded):
    """Attention over real tokens. Its fault attends to padding as well."""

    faulty = False

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 8)

    def forward(self, ids, attention_mask):
        if self.faulty and EXPORTING():
            attention_mask = torch.ones_like(attention_mask)
        x = self.embed(ids)
        scores = (x @ x.transpose(1, 2)).masked_fill(attention_mask[:, None, :] == 0, -1e9)
        return scores.softmax(-1) @ x


def make(name, faulty=False):
    """A model of this file in eval mode."""
    module = globals()[name]().eval()
    module.faulty = faulty
    return module
