"""Name the inputs, outputs and symbolic dims of an ONNX graph as the contract does."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from export_gate.wall.contract import Size
from export_gate.worker.export.axes import Axis


def name_inputs(graph: Any, names: Sequence[str]) -> None:
    """Name the graph's inputs, in order.

    Raises:
        ValueError: the graph has another number of inputs.
    """
    for value, name in zip(graph.inputs, names, strict=True):
        _free_name(graph, name, value)
        value.name = name


def name_outputs(graph: Any, names: Sequence[str]) -> dict[str, str]:
    """Name the graph's outputs, in order; the outputs that had to be named otherwise, as graph's name -> contract's.

    ONNX has one name per value: a value that is returned twice, or is an input or a weight as well, goes through an
    Identity, and an output with the name of an input becomes `NAME_output`. Outputs past the last name keep theirs,
    so that the comparison reports them.
    """
    inputs = {value.name for value in graph.inputs}
    renamed: dict[str, str] = {}
    owned: set[int] = set()
    for index, name in enumerate(names[: len(graph.outputs)]):
        value = graph.outputs[index]
        if id(value) in owned or value.producer() is None:
            value = graph.outputs[index] = _copied(graph, value)
        owned.add(id(value))
        own = f"{name}_output" if name in inputs else name
        if own != name:
            renamed[own] = name
        _free_name(graph, own, value)
        value.name = own
    return renamed


def rename_dims(graph: Any, translate: Callable[[str], str]) -> None:
    """Rename the symbolic dims of every value, those of subgraphs included."""
    import onnx_ir

    for value in _values(graph):
        named = [
            (index, dim.value)
            for index, dim in enumerate(value.shape or ())
            if isinstance(dim, onnx_ir.SymbolicDim) and dim.value is not None
        ]
        if named and value.shape.frozen:  # as all are in a model that was read again
            value.shape = value.shape.copy()
        for index, name in named:
            value.shape[index] = onnx_ir.SymbolicDim(translate(name))


def dim_names(axes: Sequence[Axis]) -> Callable[[str], str]:
    """A translation of the program's expressions (`s77`, `2*s5 + 1`) to the contract's (`batch`, `2*seq+1`)."""
    symbolic = [axis for axis in axes if _is_symbolic(axis)]
    whole = {str(axis.length): str(axis.size) for axis in symbolic}
    symbols = dict(pair for axis in symbolic for pair in _symbols(axis))
    pattern = re.compile(r"\b(" + "|".join(map(re.escape, symbols)) + r")\b") if symbols else None

    def translate(expression: str) -> str:
        # The whole expression first, because the contract may write it in its own way.
        if expression in whole or pattern is None:
            return whole.get(expression, expression)
        return pattern.sub(lambda found: symbols[found[1]], expression).replace(" ", "")

    return translate


def _is_symbolic(axis: Axis) -> bool:
    is_symbol = isinstance(axis.length, torch.SymInt) and not axis.length.node.expr.is_number
    return is_symbol and bool(axis.size.factors)


def _symbols(axis: Axis) -> Iterator[tuple[str, str]]:
    """The symbol of an axis with length `a*s + b` in the contract's words, where it is `p*dim + q` or `dim//p`."""
    expression = axis.length.node.expr
    if axis.size.dim is None:
        if expression.is_symbol:  # a sum of dims that nothing in the model relates to them
            yield str(expression), f"({axis.size})"
        return
    if len(expression.free_symbols) != 1:
        return
    (symbol,) = expression.free_symbols
    # The line through 0 and 1, if the expression is a line.
    b = expression.subs(symbol, 0)
    a = expression.subs(symbol, 1) - b
    if not a.is_Integer or (expression - a * symbol - b).expand() != 0:
        return
    factor, offset, a = axis.size.factors[axis.size.dim], axis.size.offset - int(b), int(a)
    if factor % a == 0 and offset % a == 0:
        name = str(Size(factors={axis.size.dim: factor // a}, offset=offset // a))
        yield str(symbol), name if name.isidentifier() else f"({name})"
    elif a % factor == 0 and offset == 0:
        yield str(symbol), f"({axis.size.dim}//{a // factor})"


def _copied(graph: Any, value: Any) -> Any:
    import onnx_ir

    node = onnx_ir.node("Identity", [value])
    graph.append(node)
    node.outputs[0].type, node.outputs[0].shape = value.type, value.shape
    return node.outputs[0]


def _free_name(graph: Any, name: str, owner: Any) -> None:
    """Move another value that happens to have the name out of the way; an input keeps the name it was given."""
    values = _values(graph)
    taken = {value.name for value in values}
    for value in values:
        if value.name == name and value is not owner:
            value.name = next(free for number in range(1, len(taken) + 2) if (free := f"{name}_{number}") not in taken)


def _values(graph: Any) -> list[Any]:
    """Every value of the graph and its subgraphs, once."""
    import onnx_ir

    found = [*graph.inputs, *graph.outputs, *graph.initializers.values()]
    for node in onnx_ir.traversal.RecursiveGraphIterator(graph):
        found += [value for value in (*node.inputs, *node.outputs) if value is not None]
    return list({id(value): value for value in found}.values())
