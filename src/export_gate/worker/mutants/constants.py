"""Faults of small constants: bounds by one step, factors by a thousandth, and places, counts and axes by one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np

from export_gate.wall.strength import MutationKind
from export_gate.worker.mutants.anatomy import FLOATS, Anatomy, Array
from export_gate.worker.mutants.edits import set_input
from export_gate.worker.mutants.record import Mutation

MOST = 64
"""Elements of a constant."""
ROUNDING = frozenset(("Floor", "Ceil", "Round", "Cast"))
BOUNDS = frozenset((
    "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal", "Clip", "Max", "Min", "Mod", "ThresholdedRelu",
))  # fmt: skip
"""Operators that read a constant as a bound, or as a step each multiple of which is one."""
FACTORS = frozenset((
    "Add", "Sub", "Mul", "Div", "Pow", "Where", "Pad", "PRelu", "QuantizeLinear",
    "DequantizeLinear",
))  # fmt: skip
FACTOR = 1.001
PLACES: Mapping[str, tuple[int, ...]] = {
    "Slice": (1, 2), "TopK": (1,), "Trilu": (1,), "Gather": (1,), "GatherElements": (1,), "GatherND": (1,),
    "OneHot": (1,), "Range": (0, 1), "ScatterND": (1,), "ScatterElements": (1,), "QuantizeLinear": (2,),
    "DequantizeLinear": (2,), "CumSum": (1,), "Split": (1,), "Tile": (1,), "Resize": (3,),
}  # fmt: skip
"""Inputs that say where, how many or which; others of such operators are values."""
AXES: Mapping[str, int] = {
    "ReduceMean": 1, "ReduceSum": 1, "ReduceMax": 1, "ReduceMin": 1, "ReduceL1": 1, "ReduceL2": 1, "ReduceProd": 1,
    "ReduceLogSumExp": 1, "ReduceSumSquare": 1, "Unsqueeze": 1, "Squeeze": 1,
}  # fmt: skip


FAR = 1 << 31
"""A place beyond this is the end."""


def constant_mutations(graph: Anatomy) -> Iterator[Mutation]:
    """The faults of each small constant, at each node that reads it."""
    for name, tensor in graph.tensors.items():
        count = int(np.prod(tensor.dims, dtype=np.int64))
        for at, slot in graph.readers.get(name, ()) if 0 < count <= MOST else ():
            operator = graph.operator(at)
            if slot in PLACES.get(operator, ()):
                yield from _stepped(graph, name, at, slot, kind="constant")
            elif AXES.get(operator) == slot:
                yield from _other_axes(graph, name, at, slot)
            elif operator == "Pad" and slot == 1:
                yield from _shifted(graph, name, at, slot)
            elif operator == "Reshape" and slot == 1:
                yield from _reordered(graph, name, at, slot)
            elif operator in BOUNDS or (operator == "Div" and set(graph.readers_of(at)) & ROUNDING):
                yield from _stepped(graph, name, at, slot, kind="threshold")
            elif operator in FACTORS and count == 1:
                yield from _factors(graph, name, at, slot)


def _stepped(graph: Anatomy, name: str, at: int, slot: int, *, kind: MutationKind) -> Iterator[Mutation]:
    """One element by one step of its dtype, up and down; of several elements the last."""
    values = graph.values(name)
    if values.dtype.kind in "iu" and abs(int(values.reshape(-1)[-1])) > FAR:
        changed = values.copy()
        changed.reshape(-1)[-1] = -1
        yield _mutation(graph, (at, slot), kind, f"{_of(values)} -> {_of(changed)}", changed)
        return
    for sign, word in ((1, "+"), (-1, "-")):
        changed = values.copy()
        last = changed.reshape(-1)
        if values.dtype.kind == "f":
            last[-1] = np.nextafter(last[-1], values.dtype.type(sign * math.inf))
        elif values.dtype.kind in "iu":
            with np.errstate(over="ignore"):
                last[-1] = (last[-1:] + sign).astype(values.dtype)[0]
        else:
            return
        step = "1 ulp" if values.dtype.kind == "f" else "1"
        yield _mutation(graph, (at, slot), kind, f"{_of(values)} {word} {step}", changed)


def _factors(graph: Anatomy, name: str, at: int, slot: int) -> Iterator[Mutation]:
    values = graph.values(name)
    if graph.tensors[name].data_type in FLOATS:
        changed = np.asarray(values * values.dtype.type(FACTOR))
        if math.isfinite(float(values.reshape(-1)[0])) and not np.array_equal(values, changed):
            yield _mutation(graph, (at, slot), "constant", f"{_of(values)} * {FACTOR}", changed)
    elif values.dtype.kind in "iu":
        yield from _stepped(graph, name, at, slot, kind="constant")


def _other_axes(graph: Anatomy, name: str, at: int, slot: int) -> Iterator[Mutation]:
    """The neighbouring axis, of the same tensor."""
    values, shape = graph.values(name), graph.shapes.get(graph.nodes[at].input[0])
    if shape is not None and len(shape) > 1 and values.size == 1:
        changed = np.asarray((values + 1) % len(shape))
        yield _mutation(graph, (at, slot), "attribute", f"axes {_of(values)} -> {_of(changed)}", changed)


def _shifted(graph: Anatomy, name: str, at: int, slot: int) -> Iterator[Mutation]:
    """The same amount of padding, one place further."""
    values = graph.values(name)
    half = values.size // 2
    begins, ends = values.reshape(-1)[:half], values.reshape(-1)[half:]
    moving = [axis for axis in range(half) if begins[axis] != ends[axis] or ends[axis] > 0]
    for axis in moving[-1:]:
        changed = values.copy().reshape(-1)
        step = 1 if ends[axis] > 0 else -1
        changed[axis] += step
        changed[half + axis] -= step
        yield _mutation(
            graph, (at, slot), "attribute", f"pads {_of(values)} -> {_of(changed)}", changed.reshape(values.shape)
        )


def _reordered(graph: Anatomy, name: str, at: int, slot: int) -> Iterator[Mutation]:
    """The last two lengths of a shape exchanged."""
    values = graph.values(name)
    if values.size > 1 and values[-1] != values[-2]:
        changed = values.copy()
        changed[[-1, -2]] = values[[-2, -1]]
        yield _mutation(graph, (at, slot), "attribute", f"shape {_of(values)} -> {_of(changed)}", changed)


def _mutation(graph: Anatomy, place: tuple[int, int], kind: MutationKind, words: str, values: Array) -> Mutation:
    at, slot = place
    edit = partial(set_input, at=at, slot=slot, values=values)
    return Mutation(kind=kind, at=at, operator=graph.operator(at), change=words, edit=edit)


def _of(values: Array) -> str:
    """`[0, 2]`, or the number of a scalar; long ones abridged."""
    return np.array2string(values, threshold=6, edgeitems=2, separator=", ").replace("\n", "")
