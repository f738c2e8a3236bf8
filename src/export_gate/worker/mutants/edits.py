"""Changes of an ONNX model in place, from which mutations are made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
PREFIX = "export_gate.mutant"
"""Names of values that a mutation adds."""
Build = Callable[[str, str], Sequence[Any]]
"""From the name of a value and of the one that takes its place to the nodes between them."""


def set_attribute(model: Any, at: int, name: str, value: object) -> None:
    """Give a node's attribute another value."""
    from onnx import helper

    node = model.graph.node[at]
    kept = [attribute for attribute in node.attribute if attribute.name != name]
    copies = [type(attribute).FromString(attribute.SerializeToString()) for attribute in kept]
    del node.attribute[:]
    node.attribute.extend([*copies, helper.make_attribute(name, value)])


def rename_operator(model: Any, at: int, operator: str, opset: int) -> None:
    """Make another operator of a node, with the attributes that both know."""
    import onnx

    node = model.graph.node[at]
    known = onnx.defs.get_schema(operator, opset).attributes
    kept = [type(a).FromString(a.SerializeToString()) for a in node.attribute if a.name in known]
    del node.attribute[:]
    node.attribute.extend(kept)
    node.op_type = operator


def set_input(model: Any, at: int, slot: int, values: Array) -> None:
    """Give one node another constant; who else reads the old one keeps it."""
    name = f"{PREFIX}.input"
    _add_tensor(model, name, values)
    model.graph.node[at].input[slot] = name


def set_tensor(model: Any, name: str, values: Array) -> None:
    """Give a constant other values for all who read it."""
    from onnx import numpy_helper

    made = numpy_helper.from_array(np.ascontiguousarray(values), name)
    for tensor in model.graph.initializer:
        if tensor.name == name:
            tensor.CopyFrom(made)
    for node in model.graph.node:
        if node.op_type == "Constant" and node.output[0] == name:
            node.attribute[0].t.CopyFrom(made)


def swap_inputs(model: Any, at: int, first: int, second: int) -> None:
    """Exchange two inputs of a node."""
    inputs = model.graph.node[at].input
    inputs[first], inputs[second] = inputs[second], inputs[first]


def put_before(model: Any, at: int, slot: int, build: Build) -> None:
    """Compute one input of a node from what it was."""
    name = f"{PREFIX}.before"
    nodes = build(model.graph.node[at].input[slot], name)
    model.graph.node[at].input[slot] = name
    _insert(model, at, nodes)


def put_after(model: Any, at: int, slot: int, build: Build) -> None:
    """Compute one output of a node from what it was, for all who read it."""
    output = model.graph.node[at].output[slot]
    name = f"{PREFIX}.after"
    model.graph.node[at].output[slot] = name
    _insert(model, at + 1, build(name, output))


def put_in_place(model: Any, at: int, build: Build) -> None:
    """Compute a node's output from its first input by other nodes."""
    node = model.graph.node[at]
    nodes = build(node.input[0], node.output[0])
    del model.graph.node[at]
    _insert(model, at, nodes)


def bake(model: Any, at: int, slot: int, values: Array) -> None:
    """Return these values instead of what a node computes."""
    output = model.graph.node[at].output[slot]
    model.graph.node[at].output[slot] = f"{PREFIX}.unused"
    _add_tensor(model, output, values)


def scalar(model: Any, label: str, value: float, dtype: str) -> str:
    """The name of a new constant."""
    name = f"{PREFIX}.{label}"
    _add_tensor(model, name, np.asarray(value, dtype=dtype))
    return name


def _add_tensor(model: Any, name: str, values: Array) -> None:
    from onnx import numpy_helper

    # `ascontiguousarray` makes a scalar one-dimensional.
    model.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(values).reshape(values.shape), name))


def _insert(model: Any, at: int, nodes: Sequence[Any]) -> None:
    before, after = list(model.graph.node)[:at], list(model.graph.node)[at:]
    copies = [type(node).FromString(node.SerializeToString()) for node in (*before, *nodes, *after)]
    del model.graph.node[:]
    model.graph.node.extend(copies)
