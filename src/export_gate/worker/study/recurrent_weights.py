"""The weights of recurrent layers as an ONNX file stacks them, taken apart as torch keeps them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import nn

Array = npt.NDArray[Any]

GATES: tuple[tuple[type[nn.RNNBase], tuple[int, ...]], ...] = (
    (nn.LSTM, (0, 2, 3, 1)),
    (nn.GRU, (1, 0, 2)),
    (nn.RNN, (0,)),
)
"""Where ONNX has each of torch's gates: i, f, g, o among i, o, f, c, and r, z, n among z, r, h."""


def taken_apart(given: Mapping[str, Array], module: nn.Module) -> Iterator[tuple[str, Array]]:
    """The tensors of `LSTM`, `GRU` and `RNN` nodes, one for each direction and bias, under names of their own.

    Args:
        given: a file's tensors: `[directions, gates * hidden, width]`, and `[directions, 2 * gates * hidden]` for both
            biases. Others are left out.
        module: the model, whose recurrent layers say how many gates there are and how wide they are.
    """
    layers = [part for part in module.modules() if isinstance(part, nn.RNNBase)]
    for order, hidden in sorted({(gates, part.hidden_size) for part in layers for gates in _gates(part)}):
        rows = len(order) * hidden
        for name, tensor in given.items():
            if tensor.ndim == 3 and tensor.shape[1] == rows:  # noqa: PLR2004 - the shapes above
                parts = list(tensor)
            elif tensor.ndim == 2 and tensor.shape[1] == 2 * rows:  # noqa: PLR2004 - as above
                parts = [half for both in tensor for half in np.split(both, 2)]
            else:
                continue
            for number, part in enumerate(parts):
                blocks = np.split(part, len(order))
                yield f"{name}[{number}]", np.concatenate([blocks[place] for place in order])


def _gates(layer: nn.RNNBase) -> Iterator[tuple[int, ...]]:
    yield from (order for kind, order in GATES if isinstance(layer, kind))
