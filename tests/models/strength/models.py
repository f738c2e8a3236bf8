"""Eight kinds of model, whose control sets are measured by the faults that they catch."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def _seeded(kind: type[nn.Module]) -> nn.Module:
    torch.manual_seed(0)
    module = kind().eval()
    for layer in module.modules():  # as after training: no ones and zeros, which hide what becomes of them
        if isinstance(layer, (nn.LayerNorm, nn.BatchNorm2d)):
            nn.init.uniform_(layer.weight, 0.5, 1.5)
            nn.init.uniform_(layer.bias, -0.5, 0.5)
        if isinstance(layer, nn.BatchNorm2d):
            nn.init.uniform_(layer.running_mean, -0.5, 0.5)
            nn.init.uniform_(layer.running_var, 0.5, 1.5)
    return module


class Segmenter(nn.Module):
    """A small CNN that pools, resizes back and classifies each pixel."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.deep = nn.Sequential(nn.Conv2d(8, 12, 3, stride=2, padding=1), nn.LeakyReLU(0.1))
        self.merge = nn.Conv2d(20, 8, 1)
        self.head = nn.Conv2d(8, 4, 1)

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        """Map float32[batch, 3, side, side] to float32[batch, 4, side, side] and float32[batch, 8]."""
        near = self.stem(image)
        deep = F.max_pool2d(self.deep(near), 2)
        wide = F.interpolate(deep, size=near.shape[-2:], mode="bilinear", align_corners=False)
        both = F.silu(self.merge(torch.cat([near, wide], 1)))
        small = F.avg_pool2d(both, 3, stride=2, padding=1)
        nearest = F.interpolate(small, scale_factor=2.0, mode="nearest")
        return self.head(both + nearest), F.adaptive_avg_pool2d(both, 1).flatten(1)


class Encoder(nn.Module):
    """A transformer encoder with a padding mask and a masked mean."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(40, 16)
        self.places = nn.Embedding(24, 16)
        self.query, self.key, self.value = (nn.Linear(16, 16) for _ in range(3))
        self.norm, self.last = nn.LayerNorm(16), nn.LayerNorm(16, eps=1e-6)
        self.wide, self.narrow = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Map int64[batch, seq] and bool[batch, seq] to float32[batch, 16]."""
        x = self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        heads = [part(x).unflatten(2, (4, 4)).transpose(1, 2) for part in (self.query, self.key, self.value)]
        scores = heads[0] @ heads[1].transpose(2, 3) / 2.0
        weights = scores.masked_fill(~mask[:, None, None, :], -1e4).softmax(-1)
        x = self.norm(x + (weights @ heads[2]).transpose(1, 2).flatten(2))
        x = self.last(x + self.narrow(F.gelu(self.wide(x), approximate="tanh")))
        kept = mask.unsqueeze(-1).to(x.dtype)
        return (x * kept).sum(1) / kept.sum(1).clamp(min=1.0)


class Cell(nn.Module):
    """A gated recurrent cell, unrolled over four steps."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(6, 24), nn.Linear(8, 24)
        self.head = nn.Linear(8, 3)

    def forward(self, steps: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Map float32[batch, 4, 6] and float32[batch, 8] to float32[batch, 3] and float32[batch, 8]."""
        for step in steps.unbind(1):
            reset, update, fresh = self.inner(step).chunk(3, -1)
            own_reset, own_update, own_fresh = self.outer(state).chunk(3, -1)
            gate = torch.sigmoid(update + own_update)
            candidate = torch.tanh(fresh + torch.sigmoid(reset + own_reset) * own_fresh)
            state = torch.lerp(candidate, state, gate)
        return F.elu(self.head(state)), state


class Tables(nn.Module):
    """Tables of features that ids index: a bag with padding, a bucket of a number, a product."""

    def __init__(self) -> None:
        super().__init__()
        self.items, self.ages = nn.Embedding(50, 8), nn.Embedding(5, 8)
        self.register_buffer("bounds", torch.tensor([18.0, 25.0, 40.0, 65.0]))
        self.register_buffer("shares", torch.rand(50))
        self.head = nn.Sequential(nn.Linear(16, 8), nn.Softplus(), nn.Linear(8, 2))

    def forward(self, ids: Tensor, age: Tensor) -> Tensor:
        """Map int64[batch, 5] and float32[batch] to float32[batch, 2]."""
        kept = (ids != 0).unsqueeze(-1)
        bag = torch.where(kept, self.items(ids), 0.0) * self.shares[ids].unsqueeze(-1)
        bucket = torch.bucketize(age, self.bounds)
        both = torch.cat([bag.sum(1), self.ages(bucket)], -1)
        return self.head(both).log_softmax(-1)


class Detector(nn.Module):
    """The end of a detector: scores, boxes, the best few, what is above a threshold."""

    def __init__(self) -> None:
        super().__init__()
        self.scores, self.boxes = nn.Linear(12, 5), nn.Linear(12, 4)

    def forward(self, places: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Map float32[n, 12] to float32[6, 4], float32[6], int64[6] and bool[6]."""
        scores = self.scores(places).sigmoid()
        best, label = scores.max(-1)
        centre, size = self.boxes(places).split(2, -1)
        half = size.clamp(-4.0, 4.0).exp() * 0.5
        corners = torch.cat([centre - half, centre + half], -1).clamp(min=-3.0, max=3.0)
        top, at = best.topk(6)
        is_sure = top > 0.5
        shown = torch.where(is_sure, label[at], torch.full_like(at, -1))
        return corners[at], top, shown, is_sure


class Sound(nn.Module):
    """Framed sound: windows, energy in decibels, a phase that wraps, a quantised level."""

    def __init__(self) -> None:
        super().__init__()
        self.filters = nn.Conv1d(1, 6, 8, stride=4, padding=2, bias=False)
        self.register_buffer("window", torch.hann_window(8))
        self.head = nn.Conv1d(6, 3, 3, padding=1, dilation=1)

    def forward(self, wave: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Map float32[batch, time] to float32[batch, 3, frames], float32[batch, 8] and int64[batch, time]."""
        bands = self.filters(wave.unsqueeze(1)).abs()
        level = 10.0 * bands.square().clamp(min=1e-6).log10()
        level = torch.maximum(level, level.amax(dim=(1, 2), keepdim=True) - 40.0)
        frames = wave.unfold(1, 8, 4) * self.window
        phase = torch.remainder(frames.cumsum(-1), 0.7).mean(1)
        steps = torch.div(wave, 0.25, rounding_mode="floor").to(torch.int64)
        return self.head(level), phase, steps


class Pixels(nn.Module):
    """What happens to an image before a quantised network, and one layer of that."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor([110.0, 120.0, 130.0]).view(3, 1, 1))
        self.register_buffer("spread", torch.tensor([55.0, 60.0, 65.0]).view(3, 1, 1))
        self.register_buffer("weights", torch.randint(-127, 127, (4, 3, 3, 3)).float())

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        """Map uint8[batch, 3, high, wide] to uint8 of the same shape and float32[batch, 4, high, wide]."""
        plain = (image.float() - self.mean) / self.spread
        steps = torch.round(plain / 0.05).clamp(-128, 127)
        layer = F.conv2d(steps, self.weights, padding=1) * (0.05 * 0.01)
        bright = torch.floor(image.float().mean(1, keepdim=True) * 1.1)
        mixed = torch.where(bright >= 128.0, 255.0 - bright, bright)
        back = torch.clamp(torch.round(0.5 * (mixed + image.float())), 0.0, 255.0).to(torch.uint8)
        return back, F.hardswish(layer)


class Graph(nn.Module):
    """Message passing over a list of edges: a mean and a maximum over the neighbours."""

    def __init__(self) -> None:
        super().__init__()
        self.message, self.own, self.head = nn.Linear(5, 8), nn.Linear(5, 8), nn.Linear(16, 3)

    def forward(self, nodes: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
        """Map float32[nodes, 5] and int64[2, edges] to float32[nodes, 3] and int64[nodes]."""
        start, end = edges[0], edges[1]
        sent = self.message(nodes)[start]
        place = end.unsqueeze(-1).expand(-1, 8)
        total = torch.zeros(nodes.shape[0], 8, dtype=sent.dtype).scatter_add(0, place, sent)
        count = torch.zeros(nodes.shape[0], dtype=torch.int64).scatter_add(0, end, torch.ones_like(end))
        most = torch.full((nodes.shape[0], 8), -10.0).scatter_reduce(0, place, sent, "amax")
        mean = total / count.clamp(min=1).unsqueeze(-1)
        hidden = torch.cat([F.relu(self.own(nodes) + mean), most], -1)
        return self.head(hidden), count


def segmenter() -> nn.Module:
    """For the config."""
    return _seeded(Segmenter)


def encoder() -> nn.Module:
    """For the config."""
    return _seeded(Encoder)


def cell() -> nn.Module:
    """For the config."""
    return _seeded(Cell)


def tables() -> nn.Module:
    """For the config."""
    return _seeded(Tables)


def detector() -> nn.Module:
    """For the config."""
    return _seeded(Detector)


def sound() -> nn.Module:
    """For the config."""
    return _seeded(Sound)


def pixels() -> nn.Module:
    """For the config."""
    return _seeded(Pixels)


def graph() -> nn.Module:
    """For the config."""
    return _seeded(Graph)
