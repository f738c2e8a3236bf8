"""Replace TorchScript layers by layers of torch with the same sizes, whose inputs the guesses know."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

META = {"device": "meta"}


def plain_modules(module: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """All modules by name, as `named_modules`, with layers of torch in place of those in TorchScript."""
    for name, part in module.named_modules():
        plain = stand_in(part) if isinstance(part, torch.jit.ScriptModule) else part
        if plain is not None:
            yield name, plain


def stand_in(part: Any) -> nn.Module | None:
    """A layer of torch without weights; None for other modules.

    A file keeps the names and weights of its layers, but not always their attributes: sizes are read from the weights.
    """
    shapes = {name: tuple(weight.shape) for name, weight in part.named_parameters(recurse=False)}
    kind = getattr(nn, str(part.original_name), None)
    match str(part.original_name), shapes:
        case "Linear", {"weight": (outputs, inputs)}:
            return nn.Linear(inputs, outputs, **META)
        case "Embedding" | "EmbeddingBag", {"weight": (rows, width)}:
            return kind(rows, width, **META)  # type: ignore[misc] # both exist
        case "Conv1d" | "Conv2d" | "Conv3d", {"weight": (outputs, inputs, *kernel)}:
            # The weight has the channels of one group only.
            groups = int(getattr(part, "groups", 1))
            return kind(inputs * groups, outputs, tuple(kernel), groups=groups, **META)  # type: ignore[misc] # all exist
        case "LSTM" | "GRU" | "RNN", {"weight_ih_l0": (_, inputs), "weight_hh_l0": (_, hidden)}:
            return kind(inputs, hidden, batch_first=bool(getattr(part, "batch_first", False)), **META)  # type: ignore[misc] # all exist
        case "LayerNorm", {"weight": (*sizes,)}:
            return nn.LayerNorm(sizes, **META)
        case "BatchNorm1d" | "BatchNorm2d" | "BatchNorm3d", {"weight": (channels,)}:
            return kind(channels, **META)  # type: ignore[misc] # all exist
    return None
