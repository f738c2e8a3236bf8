"""Faults of operators: a near variant in the place of each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from export_gate.worker.mutants.anatomy import FLOATS, Anatomy
from export_gate.worker.mutants.edits import put_before, put_in_place, rename_operator, scalar, swap_inputs
from export_gate.worker.mutants.record import Mutation

VARIANTS: Mapping[str, tuple[str, ...]] = {
    "Greater": ("GreaterOrEqual",), "GreaterOrEqual": ("Greater",), "Less": ("LessOrEqual",), "LessOrEqual": ("Less",),
    "And": ("Or",), "Or": ("And", "Xor"), "Xor": ("Or",), "Not": ("Identity",),
    "BitwiseAnd": ("BitwiseOr",), "BitwiseOr": ("BitwiseAnd", "BitwiseXor"),
    "Floor": ("Ceil", "Round"), "Ceil": ("Floor", "Round"), "Round": ("Floor", "Ceil"),
    "Max": ("Min",), "Min": ("Max",), "Add": ("Sub",), "Sub": ("Add",), "Mul": ("Div",), "Div": ("Mul",),
    "ReduceMax": ("ReduceMin", "ReduceMean"), "ReduceMin": ("ReduceMax",), "ReduceMean": ("ReduceSum", "ReduceMax"),
    "ReduceSum": ("ReduceMean", "ReduceL1"), "ReduceL1": ("ReduceSum", "ReduceL2"), "ReduceL2": ("ReduceL1",),
    "ReduceProd": ("ReduceSum",), "ReduceLogSumExp": ("ReduceMax",), "ReduceSumSquare": ("ReduceL1",),
    "ArgMax": ("ArgMin",), "ArgMin": ("ArgMax",), "Softmax": ("LogSoftmax",), "LogSoftmax": ("Softmax",),
    "Relu": ("LeakyRelu", "Softplus"), "LeakyRelu": ("Relu",), "Elu": ("Relu", "Selu"), "Selu": ("Elu",),
    "Celu": ("Relu",), "Softplus": ("Relu",), "Sigmoid": ("HardSigmoid",), "HardSigmoid": ("Sigmoid",),
    "Tanh": ("Softsign",), "Softsign": ("Tanh",), "HardSwish": ("Relu",), "Mish": ("HardSwish",), "Gelu": ("Relu",),
    "Abs": ("Relu",), "Sin": ("Cos",), "Cos": ("Sin",), "Sqrt": ("Abs",),
    "MaxPool": ("AveragePool",), "AveragePool": ("MaxPool",),
    "GlobalAveragePool": ("GlobalMaxPool",), "GlobalMaxPool": ("GlobalAveragePool",),
}  # fmt: skip
"""Operators that take the same inputs."""
SWAPPED: Mapping[str, tuple[int, int]] = {
    "Sub": (0, 1),
    "Div": (0, 1),
    "Where": (1, 2),
    "Concat": (0, 1),
    "Pow": (0, 1),
}
"""Operators whose inputs may be given in the wrong order."""
INTEGERS = (2, 3, 4, 5, 6, 7, 12, 13)
"""onnx.TensorProto's integers."""
Nodes = Sequence[Any]
Form = Callable[[Any, str, str, str], Nodes]
"""From a model, a value, the name of the result and the element type to the nodes of a variant."""


def operator_mutations(graph: Anatomy) -> Iterator[Mutation]:
    """The variants of each node."""
    sizes = graph.sizes()
    for at, node in enumerate(graph.nodes):
        if node.domain not in ("", "ai.onnx") or set(node.output) & sizes:
            continue
        for other in VARIANTS.get(node.op_type, ()):
            edit = partial(rename_operator, at=at, operator=other, opset=graph.opset)
            yield _mutation(graph, at, f"-> {other}", edit)
        yield from _swapped(graph, at)
        yield from _of_forms(graph, at)
        yield from _before_cast(graph, at)


def _swapped(graph: Anatomy, at: int) -> Iterator[Mutation]:
    node = graph.nodes[at]
    places = SWAPPED.get(node.op_type)
    if places is not None and len(node.input) > places[1] and node.input[places[0]] != node.input[places[1]]:
        words = f"inputs {places[0]} and {places[1]} exchanged"
        yield _mutation(graph, at, words, partial(swap_inputs, at=at, first=places[0], second=places[1]))


def _of_forms(graph: Anatomy, at: int) -> Iterator[Mutation]:
    node = graph.nodes[at]
    dtype = FLOATS.get(graph.types.get(node.input[0], 0)) if node.input else None
    if dtype is None:
        return
    for words, form in FORMS.get(node.op_type, ()):
        yield _mutation(graph, at, f"-> {words}", partial(_put, at, form, dtype))
    # Elsewhere the reciprocal is off by a last bit that tolerances allow; before a rounding it changes a whole number.
    rounded = set(graph.readers_of(at)) & {"Floor", "Ceil", "Round"}
    if node.op_type == "Div" and rounded:
        yield _mutation(graph, at, "-> multiplication by the reciprocal", partial(_multiply, at))


def _before_cast(graph: Anatomy, at: int) -> Iterator[Mutation]:
    """A cast to integers cuts; a runtime that rounds differs."""
    node = graph.nodes[at]
    is_float = bool(node.input) and graph.types.get(node.input[0]) in FLOATS
    if node.op_type == "Cast" and is_float and graph.types.get(node.output[0]) in INTEGERS:
        for other in ("Round", "Floor"):
            yield _mutation(graph, at, f"{other} before the cast", partial(_precede, at, other))


def _mutation(graph: Anatomy, at: int, words: str, edit: Callable[[Any], None]) -> Mutation:
    return Mutation(kind="operator", at=at, operator=graph.operator(at), change=words, edit=edit)


def _put(at: int, form: Form, dtype: str, model: Any) -> None:
    put_in_place(model, at, lambda value, result: form(model, value, result, dtype))


def _precede(at: int, other: str, model: Any) -> None:
    put_before(model, at, 0, lambda value, result: [_node(other, [value], result)])


def _multiply(at: int, model: Any) -> None:
    put_before(model, at, 1, lambda value, result: [_node("Reciprocal", [value], result)])
    model.graph.node[at + 1].op_type = "Mul"


def _node(operator: str, inputs: Sequence[str], output: str) -> Any:
    from onnx import helper

    return helper.make_node(operator, list(inputs), [output])


def _truncated(_model: Any, value: str, result: str, _dtype: str) -> Nodes:
    names = [f"{result}.{part}" for part in ("sign", "size", "floor")]
    return [
        _node("Sign", [value], names[0]),
        _node("Abs", [value], names[1]),
        _node("Floor", [names[1]], names[2]),
        _node("Mul", [names[0], names[2]], result),
    ]


def _half_away(model: Any, value: str, result: str, dtype: str) -> Nodes:
    names = [f"{result}.{part}" for part in ("sign", "size", "more", "floor")]
    return [
        _node("Sign", [value], names[0]),
        _node("Abs", [value], names[1]),
        _node("Add", [names[1], scalar(model, "half", 0.5, dtype)], names[2]),
        _node("Floor", [names[2]], names[3]),
        _node("Mul", [names[0], names[3]], result),
    ]


def _erf_by_tanh(model: Any, value: str, result: str, dtype: str) -> Nodes:
    """What GELU's tanh form puts in the place of erf: `tanh(2/sqrt(pi) * (x + 0.08943 * x^3))`."""
    names = [f"{result}.{part}" for part in ("square", "cube", "small", "sum", "scaled")]
    small, factor = (scalar(model, label, number, dtype) for label, number in (("small", 0.08943), ("factor", _TWO)))
    return [
        _node("Mul", [value, value], names[0]),
        _node("Mul", [names[0], value], names[1]),
        _node("Mul", [names[1], small], names[2]),
        _node("Add", [value, names[2]], names[3]),
        _node("Mul", [names[3], factor], names[4]),
        _node("Tanh", [names[4]], result),
    ]


def _capped(model: Any, value: str, result: str, dtype: str) -> Nodes:
    low, high = (scalar(model, label, number, dtype) for label, number in (("low", 0.0), ("high", 6.0)))
    return [_node("Clip", [value, low, high], result)]


_TWO = 2 / math.sqrt(math.pi)
FORMS: Mapping[str, tuple[tuple[str, Form], ...]] = {
    "Floor": (("truncation", _truncated),),
    "Round": (("halves away from zero", _half_away),),
    "Erf": (("its tanh form", _erf_by_tanh),),
    "Relu": (("ReLU6", _capped),),
}
"""Variants that no single operator is."""
