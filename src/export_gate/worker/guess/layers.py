"""List the inputs that a layer accepts, the likeliest first."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch import nn

from export_gate.wall.contract import Size, Spec, TensorSpec

BATCH, SEQ, NODES, EDGES = DIMS = "batch", "seq", "nodes", "edges"
SIDES = (32, 28, 64, 224, 24, 16, 128, 48, 96)
"""Lengths of image axes to try; a fully connected layer behind convolutions fits one only."""
LENGTH = 8
"""The longest sequence, where no dim says it."""
LONG = 1600
"""Samples of a waveform: a tenth of a second at 16 kHz."""
UNIT, CENTRED = (0.0, 1.0), (-3.0, 3.0)
"""Ranges that stand for pixels and for normalized features."""

IMAGE_LAYERS: dict[int, tuple[Any, ...]] = {
    1: (nn.Conv1d, nn.ConvTranspose1d),
    2: (nn.Conv2d, nn.ConvTranspose2d, nn.BatchNorm2d, nn.InstanceNorm2d),
    3: (nn.Conv3d, nn.ConvTranspose3d, nn.BatchNorm3d, nn.InstanceNorm3d),
}
"""Number of image axes -> both convolutions, then norms."""
SEQUENCE_LAYERS = (nn.RNNBase, nn.MultiheadAttention, nn.Transformer, nn.TransformerEncoderLayer)
"""A model with one of them takes sequences, so that its linear layers see them too."""
LAYERS = (
    nn.Embedding, nn.EmbeddingBag, nn.Linear, nn.RNNBase, nn.MultiheadAttention, nn.LayerNorm, nn.GroupNorm,
    nn.BatchNorm1d, nn.InstanceNorm1d, *(kind for kinds in IMAGE_LAYERS.values() for kind in kinds),
)  # fmt: skip
MAIN_INPUTS = frozenset({"input", "query", "key", "value", "input1", "input2", "src", "tgt", "memory"})
"""Parameters of torch's layers that take data; the others are states, masks and offsets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A layer of the model."""

    module: nn.Module
    name: str
    """Dotted, as `named_modules` has it."""

    def __str__(self) -> str:
        sizes = re.sub(r"\w+=", "", ", ".join(self.module.extra_repr().split(", ")[:2])) or _attention_sizes(
            self.module
        )
        text = f"{type(self.module).__name__}({sizes})"
        return f"{self.name}: {text}" if self.name else text


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One way to feed a parameter."""

    spec: Spec
    reason: str
    """The reason for the guess."""


def is_layer(module: nn.Module) -> bool:
    """Whether its sizes show what it accepts."""
    # A lazy layer has no sizes yet.
    return isinstance(module, LAYERS) and not isinstance(module, nn.modules.lazy.LazyModuleMixin)


def open_up(module: nn.Module) -> nn.Module:
    """The transformers of torch stand for the attention in their first layer."""
    if isinstance(module, nn.Transformer):
        module = module.encoder
    if isinstance(module, (nn.TransformerEncoder, nn.TransformerDecoder)) and len(module.layers):
        module = module.layers[0]
    if isinstance(module, (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)):
        return module.self_attn
    return module


def tensor(dtype: str, *axes: str | int, within: tuple[float, float] | None = None) -> TensorSpec:
    """A tensor whose axes are dims and constants."""
    shape = tuple(Size(factors={axis: 1}) if isinstance(axis, str) else Size(offset=axis) for axis in axes)
    return TensorSpec(dtype=dtype, shape=shape, range=within)


def layer_options(layer: Layer, floats: str, *, is_sequential: bool) -> tuple[Option, ...]:
    """What the layer takes.

    Args:
        layer: one that `is_layer` knows.
        floats: dtype of the model's weights.
        is_sequential: whether the model has layers over sequences, so that a linear layer sees one too.
    """
    return tuple(Option(spec=spec, reason=str(layer)) for spec in _specs(layer.module, floats, is_sequential))


def image_specs(channels: int, floats: str, axes: int = 2) -> Iterator[TensorSpec]:
    """Images of some sides."""
    return (tensor(floats, BATCH, channels, *(side,) * axes, within=UNIT) for side in SIDES)


def _specs(module: nn.Module, floats: str, is_sequential: bool) -> Iterator[TensorSpec]:
    match module:
        case nn.Embedding() | nn.EmbeddingBag():
            yield tensor("int64", BATCH, SEQ, within=(0, module.num_embeddings - 1))
            yield tensor("int64", BATCH, within=(0, module.num_embeddings - 1))
        case nn.Linear():
            yield from _features((module.in_features,), floats, is_sequential)
        case nn.LayerNorm():
            yield from _features(tuple(module.normalized_shape), floats, is_sequential)
        case nn.RNNBase():
            yield _sequence(module.input_size, floats, module.batch_first)
        case nn.MultiheadAttention():
            # The layer does not show whether the parameter is its query, key or value, which may have other widths.
            for width in dict.fromkeys((module.embed_dim, module.kdim, module.vdim)):
                yield _sequence(width, floats, module.batch_first)
        case nn.BatchNorm1d() | nn.InstanceNorm1d():
            yield tensor(floats, BATCH, module.num_features, within=CENTRED)
            yield tensor(floats, BATCH, module.num_features, SIDES[0], within=CENTRED)
        case _:
            yield from _images(module, floats)


def _images(module: Any, floats: str) -> Iterator[TensorSpec]:
    for axes, (convolution, transposed, *norms) in IMAGE_LAYERS.items():
        if isinstance(module, (convolution, transposed)):
            yield from image_specs(module.in_channels, floats, axes)
        elif type(module) in norms:
            yield from image_specs(module.num_features, floats, axes)
    if isinstance(module, nn.GroupNorm):
        yield from image_specs(module.num_channels, floats)


def _sequence(width: int, floats: str, batch_first: bool) -> TensorSpec:
    return tensor(floats, *((BATCH, SEQ) if batch_first else (SEQ, BATCH)), width, within=CENTRED)


def _features(sizes: tuple[int, ...], floats: str, is_sequential: bool) -> Iterator[TensorSpec]:
    """Rows of features, or sequences of them; last, square images that are flattened to them."""
    rows = tensor(floats, BATCH, *sizes, within=CENTRED), tensor(floats, BATCH, SEQ, *sizes, within=CENTRED)
    yield from rows[::-1] if is_sequential else rows
    for channels in (1, 3):
        side = round((sizes[-1] / channels) ** 0.5)
        if len(sizes) == 1 and side > 3 and channels * side * side == sizes[0]:  # noqa: PLR2004 - no image is smaller
            yield tensor(floats, BATCH, channels, side, side, within=UNIT)


def _attention_sizes(module: nn.Module) -> str:
    return f"{module.embed_dim}, {module.num_heads}" if isinstance(module, nn.MultiheadAttention) else ""
