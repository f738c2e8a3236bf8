"""Guess inputs from a parameter's name, its annotation and the model's own configuration."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from export_gate.wall.contract import ConstantSpec, Scalar, Size, TensorSpec
from export_gate.worker.guess.layers import BATCH, CENTRED, IMAGE_LAYERS, LENGTH, SEQ, UNIT, image_specs, tensor
from export_gate.worker.guess.scripted import plain_modules

IDS = re.compile(r"(.*_)?(ids?|tokens?|idx|index|indices|labels?|words?|symbols?)")
MASK = re.compile(r"(.*_)?(mask|pad|padding)")
IMAGE = re.compile(r"(.*_)?(images?|imgs?|pixels?|pixel_values|photos?|frames?|pictures?)")
LENGTHS = re.compile(
    r"(.*_)?([xy]|seq|src|tgt)?(lengths?|lens?)|(.*_)?(n|num)_?(valid_)?(frames|steps|timesteps|tokens|words|chars|phonemes|points)"
)
POSITIONS = re.compile(r"(.*_)?(pos|positions?|position_ids)")
TYPES = re.compile(r"(.*_)?(token_type_ids|segment_ids|segments?)")
HIDDEN = re.compile(r"(.*_)?(embeds?|embeddings?|hidden|hidden_states?|features)")
TIMES = re.compile(r"(.*_)?(t|time|times|timesteps?|sigma|noise_level)")
SINGLE = re.compile(
    r"(.*_)?(y|label|class|cls|category|t|time|timesteps?|step|domain|lang|speaker|user|item|id|uid|idx)"
)
"""Names of one number per sample."""
SCALAR_WORDS: tuple[tuple[str, Scalar], ...] = (("bool", False), ("int", 1), ("float", 1.0), ("str", ""))
NEUTRAL_WORDS = {"Optional", "Union", "None", "NoneType", "typing"}
"""Words of an annotation that do not name a type of value."""
VOCABULARY, CHANNELS = 100, 3
"""The default if nothing shows the size."""


def constant_for(annotation: Any) -> ConstantSpec | None:
    """The constant for a parameter annotated as a plain Python number, switch or text; None for tensors."""
    # `int | Tensor` may be a tensor, so only a single word counts.
    words = set(re.findall(r"\w+", spelled(annotation))) - NEUTRAL_WORDS
    if len(words) > 1 or not words:
        return None
    return next((ConstantSpec(value=value) for word, value in SCALAR_WORDS if word in words), None)


def spelled(annotation: Any) -> str:
    """An annotation as source has it; empty if there is none."""
    if annotation is inspect.Parameter.empty:
        return ""
    if isinstance(annotation, type) and not hasattr(annotation, "__args__"):
        return annotation.__qualname__
    return str(annotation)


def named_specs(name: str, module: nn.Module, floats: str) -> tuple[TensorSpec, ...]:
    """What a parameter of that name is elsewhere, the likeliest first; nothing for names that say nothing."""
    return tuple(_named(name.lower(), module, floats))


def any_specs(floats: str) -> tuple[TensorSpec, ...]:
    """Guesses if nothing at all is known."""
    return (
        tensor(floats, BATCH, 8, within=CENTRED),
        tensor(floats, BATCH, 3, 32, 32, within=UNIT),
        tensor(floats, BATCH, SEQ, within=CENTRED),
        tensor(floats, BATCH, SEQ, 8, within=CENTRED),
        tensor(floats, BATCH, within=CENTRED),
        tensor("int64", BATCH, SEQ, within=(0, 1)),
    )


def is_mask(name: str) -> bool:
    """Whether the name is a mask's: the layer that gets it says nothing of its shape."""
    return MASK.fullmatch(name.lower()) is not None


def is_telling(name: str) -> bool:
    """Whether the name says what the tensor is, however it is used: a mask, lengths or types."""
    return any(pattern.fullmatch(name.lower()) for pattern in (MASK, LENGTHS, TYPES))


def is_length(name: str) -> bool:
    """Whether the name is that of one length per sample."""
    return LENGTHS.fullmatch(name.lower()) is not None


def is_single(name: str) -> bool:
    """Whether the name is that of one number per sample rather than of a sequence."""
    return SINGLE.fullmatch(name.lower()) is not None


def is_image(name: str) -> bool:
    """Whether the name is an image's."""
    return IMAGE.fullmatch(name.lower()) is not None


def configured(module: nn.Module, *names: str) -> int | None:
    """The first of the numbers that a Hugging Face configuration has, also below its text or vision part."""
    config = getattr(module, "config", None)
    parts = (config, *(getattr(config, part, None) for part in ("text_config", "vision_config")))
    found = (getattr(part, name, None) for part in parts for name in names)
    return next((_side(value) for value in found if isinstance(_side(value), int)), None)


def _side(value: Any) -> Any:
    """`image_size` may be a pair."""
    return value[0] if isinstance(value, (list, tuple)) and value else value


def _named(name: str, module: nn.Module, floats: str) -> Iterator[TensorSpec]:
    # From special names to general ones: `position_ids` is also the name of ids.
    if LENGTHS.fullmatch(name):
        whole = Size(factors={SEQ: 1})
        yield replace(tensor("int64", BATCH), range=(1, whole))
        # Some models pad to the longest one, which then must be as long as the sequence.
        yield replace(tensor("int64", BATCH), range=(whole, whole))
    elif TYPES.fullmatch(name):
        yield tensor("int64", BATCH, SEQ, within=(0, (configured(module, "type_vocab_size") or 2) - 1))
    elif POSITIONS.fullmatch(name):
        highest = (configured(module, "max_position_embeddings") or LENGTH) - 1
        yield tensor("int64", BATCH, SEQ, within=(0, highest))
        yield tensor(floats, BATCH, SEQ, within=CENTRED)
        yield tensor(floats, BATCH, 3, within=CENTRED)
    elif is_mask(name):
        yield from _masks(name, module, floats)
    elif is_image(name):
        yield from _images(module, floats)
    elif IDS.fullmatch(name):
        yield tensor("int64", BATCH, SEQ, within=(0, _vocabulary(module) - 1))
        yield tensor("int64", BATCH, within=(0, _vocabulary(module) - 1))
    elif HIDDEN.fullmatch(name) and (width := configured(module, "hidden_size", "n_embd", "d_model")):
        yield tensor(floats, BATCH, SEQ, width, within=CENTRED)
    elif TIMES.fullmatch(name):
        yield tensor(floats, BATCH, within=UNIT)
        yield tensor("int64", BATCH, within=(0, 999))
        yield tensor(floats, BATCH, 1, within=UNIT)


def _masks(name: str, module: nn.Module, floats: str) -> Iterator[TensorSpec]:
    """Hugging Face counts with 0 and 1, others mask with bools."""
    masks = [
        tensor("bool", BATCH, SEQ),
        tensor("int64", BATCH, SEQ, within=(0, 1)),
        tensor(floats, BATCH, SEQ, within=UNIT),
        tensor("bool", SEQ, SEQ),
        tensor(floats, BATCH, SEQ, 1, within=UNIT),
        tensor("bool", BATCH, 1, 1, SEQ),
    ]
    is_counted = hasattr(module, "config") or name == "attention_mask"
    yield from (masks[1], masks[0], *masks[2:]) if is_counted else masks


def _images(module: nn.Module, floats: str) -> Iterator[TensorSpec]:
    channels = configured(module, "num_channels", "in_channels") or _first_channels(module)
    side = configured(module, "image_size")
    if side is not None:
        yield tensor(floats, BATCH, channels, side, side, within=UNIT)
    yield from image_specs(channels, floats)


def _first_channels(module: nn.Module) -> int:
    return next((m.in_channels for _, m in plain_modules(module) if isinstance(m, IMAGE_LAYERS[2][:2])), CHANNELS)


def _vocabulary(module: nn.Module) -> int:
    sizes = (m.num_embeddings for _, m in plain_modules(module) if isinstance(m, (nn.Embedding, nn.EmbeddingBag)))
    return configured(module, "vocab_size") or next(sizes, VOCABULARY)


def float_dtype(module: nn.Module) -> str:
    """The dtype of the first floating weight: inputs of another one are refused by its layers."""
    weights = (*module.parameters(), *module.buffers())
    floating = (weight.dtype for weight in weights if weight.is_floating_point())
    return str(next(floating, torch.float32)).removeprefix("torch.")
