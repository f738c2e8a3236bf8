"""Memory layout of tensors: copies that keep it, and other layouts of the same values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from export_gate.wall.inputs import InputPath

CHANNELS_LAST_RANKS = (4, 5)
"""torch has this memory format for images and volumes only."""


def clone(value: Any) -> Any:
    """A deep copy of tensors in containers that keeps strides; constants are passed on.

    Expanded axes stay expanded and slices stay slices, unlike `Tensor.clone`, which makes such tensors contiguous.
    """
    return map_tensors(value, _clone_tensor)


def noncontiguous(value: Any) -> Any:
    """The same values as every second element of a row twice as long, for each tensor with an axis."""
    return map_tensors(value, _every_second)


def channels_last(value: Any) -> Any:
    """The same values in channels-last order, for each tensor of rank 4 and 5."""
    return map_tensors(value, _channels_last)


def _clone_tensor(tensor: torch.Tensor) -> torch.Tensor:
    # The memory of a lazy conjugate or negative does not hold its values.
    dense = tensor.detach().resolve_conj().resolve_neg()
    if dense.layout != torch.strided or dense.numel() == 0:
        return dense.clone()
    # From the first to the last element, gaps and overlaps included.
    extent = 1 + sum((size - 1) * stride for size, stride in zip(dense.shape, dense.stride(), strict=True))
    memory = dense.as_strided((extent,), (1,), dense.storage_offset()).clone()
    return memory.as_strided(dense.shape, dense.stride(), 0)


def map_tensors(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """The same containers and constants with every tensor changed."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: map_tensors(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [map_tensors(item, change) for item in value]
        return items if isinstance(value, list) else tuple(items)
    return value


def tensors_in(value: Any, path: InputPath = ()) -> Iterator[tuple[InputPath, torch.Tensor]]:
    """Every tensor in dicts, lists and tuples, with the keys and positions that lead to it."""
    if isinstance(value, torch.Tensor):
        yield path, value
    elif isinstance(value, (dict, list, tuple)):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from tensors_in(item, (*path, key))


def tensors_of(values: Any) -> dict[str, torch.Tensor]:
    """The same by their paths as text: `x`, `pyramid.0`, `state.hidden`."""
    return {".".join(map(str, path)): tensor for path, tensor in tensors_in(values)}


def _every_second(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.dim() == 0:
        return tensor
    wide = tensor.new_zeros((*tensor.shape[:-1], 2 * tensor.shape[-1]))
    wide[..., ::2] = tensor
    return wide[..., ::2]


def _channels_last(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.dim() not in CHANNELS_LAST_RANKS:
        return tensor
    order = torch.channels_last if tensor.dim() == CHANNELS_LAST_RANKS[0] else torch.channels_last_3d
    return tensor.contiguous(memory_format=order)
