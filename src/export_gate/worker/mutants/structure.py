"""Faults of sizes, casts and outputs: a fixed size, a value that was narrower for a moment, outputs mixed up."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from export_gate.worker.mutants.anatomy import INT64, Anatomy, Array
from export_gate.worker.mutants.edits import bake, put_after
from export_gate.worker.mutants.record import Mutation

FLOAT, FLOAT16, DOUBLE, INT32 = 1, 10, 11, 6
"""onnx.TensorProto.DataType."""
GROWING = frozenset((
    "Add", "BitShift", "Cast", "CumSum", "MatMul", "Mul", "Pow", "ReduceProd", "ReduceSum", "ScatterElements",
    "ScatterND", "Sub",
))  # fmt: skip
"""Operators whose integers may be too large for 32 bits; others pass positions and such on."""


def baked_dims(graph: Anatomy, reference: Mapping[str, Array]) -> Iterator[Mutation]:
    """Each size that differs between inputs, replaced by its value at the reference.

    Args:
        graph: The file's.
        reference: Values that are computed from sizes -> what they are at the reference input; only those that differ
            at other inputs.
    """
    for at, node in enumerate(graph.nodes):
        for slot, name in enumerate(node.output):
            if name in reference:
                words = f"fixed at {reference[name].tolist()}"
                edit = partial(bake, at=at, slot=slot, values=reference[name])
                yield Mutation(kind="baked-dim", at=at, operator=node.op_type, change=words, edit=edit)


def cast_mutations(graph: Anatomy) -> Iterator[Mutation]:
    """A value that passes through a narrower type."""
    sizes = graph.sizes()
    for at, node in enumerate(graph.nodes):
        kind = graph.types.get(node.output[0]) if node.output else None
        if set(node.output) & sizes or node.op_type == "Constant":
            continue
        if kind == FLOAT:
            yield _through(at, node, FLOAT16, FLOAT, "float32 -> float16 -> float32")
        if kind == DOUBLE:
            yield _through(at, node, FLOAT, DOUBLE, "float64 -> float32 -> float64")
        if kind == INT64 and node.op_type in GROWING:
            yield _through(at, node, INT32, INT64, "int64 -> int32 -> int64")


def output_mutations(graph: Anatomy) -> Iterator[Mutation]:
    """Outputs with another dtype, without one of them, in another order, and under each other's names."""
    outputs = graph.model.graph.output
    for place, value in enumerate(outputs):
        kind = value.type.tensor_type.elem_type
        other = {FLOAT: DOUBLE, INT64: INT32}.get(kind)
        if other is not None:
            words = f"output {value.name}: {'float32 -> float64' if kind == FLOAT else 'int64 -> int32'}"
            yield _interface(words, partial(_retype, place, other))
        if len(outputs) > 1:
            yield _interface(f"output {value.name} left out", partial(_leave_out, place))
    for first, second in itertools.combinations(range(len(outputs)), 2):
        kinds = {outputs[place].type.tensor_type.elem_type for place in (first, second)}
        names = f"{outputs[first].name} and {outputs[second].name}"
        yield _interface(f"outputs {names} listed in the other order", partial(_reorder, first, second))
        if len(kinds) == 1:
            yield _interface(f"outputs {names} exchanged", partial(_exchange, first, second))


def _through(at: int, node: Any, narrow: int, wide: int, words: str) -> Mutation:
    edit = partial(_cast_twice, at, narrow, wide)
    return Mutation(kind="cast", at=at, operator=node.op_type, change=words, edit=edit)


def _interface(words: str, edit: Any) -> Mutation:
    return Mutation(kind="output", at=-1, operator="", change=words, edit=edit)


def _cast_twice(at: int, narrow: int, wide: int, model: Any) -> None:
    put_after(
        model,
        at,
        0,
        lambda value, result: [*_cast(value, f"{result}.narrow", narrow), *_cast(f"{result}.narrow", result, wide)],
    )


def _cast(value: str, result: str, kind: int) -> list[Any]:
    from onnx import helper

    return [helper.make_node("Cast", [value], [result], to=kind)]


def _retype(place: int, kind: int, model: Any) -> None:
    value = model.graph.output[place]
    _rename(model, {value.name: f"{value.name}.before"})
    model.graph.node.extend(_cast(f"{value.name}.before", value.name, kind))
    value.type.tensor_type.elem_type = kind


def _leave_out(place: int, model: Any) -> None:
    del model.graph.output[place]


def _reorder(first: int, second: int, model: Any) -> None:
    outputs = [type(value).FromString(value.SerializeToString()) for value in model.graph.output]
    outputs[first], outputs[second] = outputs[second], outputs[first]
    del model.graph.output[:]
    model.graph.output.extend(outputs)


def _exchange(first: int, second: int, model: Any) -> None:
    one, other = model.graph.output[first], model.graph.output[second]
    _rename(model, {one.name: other.name, other.name: one.name})
    shapes = [type(value.type).FromString(value.type.SerializeToString()) for value in (one, other)]
    one.type.CopyFrom(shapes[1])
    other.type.CopyFrom(shapes[0])


def _rename(model: Any, names: Mapping[str, str]) -> None:
    """Rename values wherever nodes compute or read them."""
    for node in model.graph.node:
        for values in (node.input, node.output):
            for slot, name in enumerate(values):
                values[slot] = names.get(name, name)
