"""Faults of weights: one element, one channel, the whole tensor, and half precision."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from export_gate.worker.controls.stream import Stream
from export_gate.worker.mutants.anatomy import FLOATS, Anatomy, Array
from export_gate.worker.mutants.edits import set_tensor
from export_gate.worker.mutants.record import Mutation

CHANNEL_FACTOR, SCALE_FACTOR = 1.05, 1.01
LAST_AXIS = ("MatMul",)
"""Operators whose weights have channels along the last axis, not the first."""


def weight_mutations(graph: Anatomy, seed: int) -> Iterator[Mutation]:
    """Three for each floating tensor with several elements, and a fourth for float32."""
    for name, tensor in graph.tensors.items():
        places = graph.readers.get(name, ())
        dtype, count = FLOATS.get(tensor.data_type), int(np.prod(tensor.dims, dtype=np.int64))
        if dtype is None or count < 2 or not places:  # noqa: PLR2004 - a scalar is a constant, not a weight
            continue
        at = places[0][0]
        operator = graph.operator(at)
        axis = len(tensor.dims) - 1 if operator in LAST_AXIS else 0
        stream = Stream(seed, "mutants", name)
        element, channel = (int(stream.integers(0, bound - 1, 1)[0]) for bound in (count, tensor.dims[axis]))
        one = partial(Mutation, kind="weight", at=at, operator=operator)
        for words, change in (
            (f"{name}: one element moved by the tensor's usual size", partial(_element, element)),
            (f"{name}: one channel * {CHANNEL_FACTOR}", partial(_channel, axis, channel)),
            (f"{name}: * {SCALE_FACTOR}", _scaled),
        ):
            yield one(change=words, edit=partial(_edit, graph, name, change))
        if dtype == "float32":
            edit = partial(_edit, graph, name, _rounded)
            yield one(kind="cast", change=f"{name}: rounded to float16", edit=edit)


def _edit(graph: Anatomy, name: str, change: object, model: object) -> None:
    assert callable(change)
    set_tensor(model, name, change(graph.values(name).copy()))


def _element(element: int, values: Array) -> Array:
    step = np.sqrt(np.mean(np.square(values, dtype=np.float64))) or 1.0
    values.reshape(-1)[element] += values.dtype.type(step)
    return values


def _channel(axis: int, channel: int, values: Array) -> Array:
    rows = np.moveaxis(values, axis, 0)
    rows[channel] *= values.dtype.type(CHANNEL_FACTOR)
    return values


def _scaled(values: Array) -> Array:
    return np.asarray(values * values.dtype.type(SCALE_FACTOR))


def _rounded(values: Array) -> Array:
    with np.errstate(over="ignore"):
        return values.astype(np.float16).astype(np.float32)
