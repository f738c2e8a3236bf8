"""Inputs that have the same names everywhere, beyond ids, masks and images: audio, states, columns, graphs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from torch import nn

from export_gate.wall.contract import SequenceSpec, Size, Spec, TensorSpec
from export_gate.worker.guess.layers import BATCH, CENTRED, EDGES, LONG, NODES, SEQ, UNIT, tensor

WAVE = re.compile(r"(.*_)?(input_values|wave|waveforms?|wavs?|audios?|speech|signals?)")
SPECTRUM = re.compile(r"input_features")
STATE = re.compile(r"(.*_)?(states?|hidden|hiddens|hx|carry|memory)")
STATE_PART = re.compile(r"(h|c|h_?0|c_?0|h_?in|c_?in|h_prev|c_prev|cx|cell|(prev_|last_)?(hidden|cell)(_state)?)")
COLUMNS = re.compile(r"(.*_)?(cats?|categ|categoricals?|categories|categorical_\w+|cat_\w+|sparse|sparse_\w+)")
EDGE_INDEX = re.compile(r"(.*_)?(edge_index|edges|edge_indices)")
EDGE_VALUES = re.compile(r"edge_(attrs?|weights?|features?|feats?|type)")
ADJACENCY = re.compile(r"(adj|adj_.*|.*_adj|adjacency|adjacency_.*|a_hat)")
OFFSETS = ((0.0,), (1.0, 2.0), (3.0, 4.0))
"""Where three bags may begin: the first one at 0, none before another."""
MOST_VALUES = 64
"""Of columns together: more are declared by their range."""


def usual_specs(name: str, module: nn.Module, floats: str) -> Iterator[Spec]:
    """What a parameter of that name is, the likeliest first; nothing for other names."""
    if WAVE.fullmatch(name):
        yield from _mel(module, floats)
        yield tensor(floats, BATCH, LONG, within=(-1.0, 1.0))
        yield tensor(floats, BATCH, 1, LONG, within=(-1.0, 1.0))
    elif SPECTRUM.fullmatch(name):
        yield from _mel(module, floats)
    elif name == "offsets":
        yield replace(tensor("int64", len(OFFSETS)), positions=OFFSETS)
    elif COLUMNS.fullmatch(name):
        yield from _columns(module)
    elif is_graph(module):
        yield from _graph(name, floats)
    if STATE.fullmatch(name) or STATE_PART.fullmatch(name):
        yield from _states(name, module, floats)


def is_graph(module: nn.Module) -> bool:
    """Whether forward takes edges or an adjacency matrix, so that the rows of its other inputs are nodes."""
    # `co_varnames` begins with the arguments; local variables follow.
    names = getattr(getattr(type(module).forward, "__code__", None), "co_varnames", ())
    count = getattr(getattr(type(module).forward, "__code__", None), "co_argcount", 0)
    return any(EDGE_INDEX.fullmatch(name) or ADJACENCY.fullmatch(name) for name in names[:count])


def of_nodes(spec: Spec) -> Spec:
    """A batch of rows as the nodes of one graph."""
    if not isinstance(spec, TensorSpec):
        return spec
    nodes = Size(factors={NODES: 1})
    return replace(spec, shape=tuple(nodes if axis.dim == BATCH else axis for axis in spec.shape))


def _mel(module: nn.Module, floats: str) -> Iterator[TensorSpec]:
    """Frames of a spectrogram, as the configuration fixes their number and order."""
    config = getattr(module, "config", None)
    bins = getattr(config, "num_mel_bins", None) or getattr(config, "feature_size", None)
    positions = getattr(config, "max_source_positions", None)
    # As in Whisper, whose second convolution halves the number of frames.
    if bins and isinstance(positions, int):
        yield tensor(floats, BATCH, bins, 2 * positions, within=CENTRED)
    if bins and isinstance(frames := getattr(config, "max_length", None), int) and frames > bins:
        yield tensor(floats, BATCH, frames, bins, within=CENTRED)
    if bins:
        yield tensor(floats, BATCH, SEQ, bins, within=CENTRED)
        yield tensor(floats, BATCH, bins, 64, within=CENTRED)


def _columns(module: nn.Module) -> Iterator[TensorSpec]:
    """One column for each of several tables, each below the number of its rows."""
    lists = [part for part in module.modules() if isinstance(part, (nn.ModuleList, nn.ModuleDict)) and len(part) > 1]
    for part in lists:
        tables = [child for child in part.children() if isinstance(child, (nn.Embedding, nn.EmbeddingBag))]
        # Not all of them are tables, so the list is not one of columns.
        if len(tables) < len(part):
            continue
        rows = [table.num_embeddings for table in tables]
        spec = tensor("int64", BATCH, len(rows), within=(0, min(rows) - 1))
        if sum(rows) <= MOST_VALUES and len(set(rows)) > 1:
            yield replace(spec, range=None, positions=tuple(tuple(map(float, range(n))) for n in rows))
        yield spec


def _graph(name: str, floats: str) -> Iterator[TensorSpec]:
    last_node = Size(factors={NODES: 1}, offset=-1)
    if EDGE_INDEX.fullmatch(name):
        yield replace(tensor("int64", 2, EDGES), range=(0, last_node))
    elif EDGE_VALUES.fullmatch(name):
        yield tensor(floats, EDGES, within=UNIT)
        yield tensor(floats, EDGES, 1, within=UNIT)
    elif ADJACENCY.fullmatch(name):
        yield tensor(floats, NODES, NODES, within=UNIT)
    elif name == "batch":
        yield tensor("int64", NODES, within=(0, 1))
    elif name in {"pos", "coords", "xyz"}:
        yield tensor(floats, NODES, 3, within=CENTRED)


def _states(name: str, module: nn.Module, floats: str) -> Iterator[Spec]:
    """The states that the first recurrent layer takes: of an LSTM two, unless the name is one's."""
    layer: Any = next((m for m in module.modules() if isinstance(m, (nn.RNNBase, nn.RNNCellBase))), None)
    if layer is None:
        return
    one = _state(layer, floats, layer.hidden_size)
    # A projection narrows the hidden state, but not the cell's.
    if isinstance(layer, nn.LSTM) and layer.proj_size and not name.startswith("c"):
        one = _state(layer, floats, layer.proj_size)
    if isinstance(layer, (nn.LSTM, nn.LSTMCell)) and not STATE_PART.fullmatch(name):
        yield SequenceSpec(kind="tuple", items=(one, _state(layer, floats, layer.hidden_size)))
    yield one


def _state(layer: Any, floats: str, width: int) -> TensorSpec:
    if isinstance(layer, nn.RNNCellBase):
        return tensor(floats, BATCH, width, within=CENTRED)
    return tensor(floats, layer.num_layers * (1 + layer.bidirectional), BATCH, width, within=CENTRED)
