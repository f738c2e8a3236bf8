"""Check whether an ONNX graph is affine in its inputs, with the same allow-list as ONNX operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

State = Literal["constant", "size", "affine"]
"""Of a value: fixed, computed from the inputs' sizes, or affine in the inputs' elements."""

FIRST = frozenset((
    "Neg", "Identity", "Cast", "Div", "Conv", "BatchNormalization", "Dropout",
    "Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze", "Expand", "Slice", "Gather", "Pad", "Split",
    "ReduceSum", "ReduceMean", "AveragePool", "GlobalAveragePool", "Resize", "SpaceToDepth", "DepthToSpace",
))  # fmt: skip
"""Affine in the first input while all others are fixed."""
PRODUCTS = frozenset(("Mul", "MatMul"))
SUMS = frozenset(("Add", "Sub", "Sum", "Concat"))
SPREAD = frozenset(("Add", "Sub", "Sum", "Mul", "Div"))
"""Operators that broadcast a fixed operand over the rows."""
RANDOM = frozenset((
    "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial", "Dropout",
))  # fmt: skip
SHAPED_BY_SIZES = frozenset(("Reshape", "Expand", "Slice"))


class _Graph:
    """States, shapes and constants of a graph's values."""

    def __init__(self, graph: Any) -> None:
        from onnx import numpy_helper

        # An optional input that is left out has an empty name. Sparse weights get no shape here, so that no rule for
        # rows admits them.
        self.states: dict[str, State] = {"": "constant"}
        self.states |= {sparse.values.name: "constant" for sparse in graph.sparse_initializer}
        self.shapes: dict[str, tuple[int | str | None, ...]] = {}
        self.constants: dict[str, Any] = {}
        for tensor in graph.initializer:
            self.states[tensor.name] = "constant"
            self.shapes[tensor.name] = tuple(tensor.dims)
            # Lazily: weights are constants as well, and only axes and pads are read.
            self.constants[tensor.name] = lambda tensor=tensor: numpy_helper.to_array(tensor).tolist()
        for node in graph.node:
            if node.op_type == "Constant" and node.attribute[0].name == "value":
                tensor = node.attribute[0].t
                self.shapes[node.output[0]] = tuple(tensor.dims)
                self.constants[node.output[0]] = lambda tensor=tensor: numpy_helper.to_array(tensor).tolist()
        for value in (*graph.input, *graph.value_info, *graph.output):
            shape = value.type.tensor_type.shape if value.type.tensor_type.HasField("shape") else None
            if shape is not None and value.name not in self.shapes:
                self.shapes[value.name] = tuple(_length(dim) for dim in shape.dim)

    def integers(self, name: str) -> list[int] | None:
        """The constant's integers, or None if it is computed."""
        if name not in self.constants:
            return None
        value = self.constants[name]()
        return value if isinstance(value, list) else [value]


def is_affine_onnx(model: Any, *, by_row: bool = True) -> bool:
    """Every operator of the graph is affine in its floating-point inputs.

    Args:
        model: An `onnx.ModelProto`; its weights need not be loaded.
        by_row: As for `is_affine_graph`.
    """
    import onnx

    graph = onnx.shape_inference.infer_shapes(model).graph
    known = _Graph(graph)
    inputs = [value for value in graph.input if value.name not in known.states]
    floats = (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)
    if not inputs or any(value.type.tensor_type.elem_type not in floats for value in inputs):
        return False
    firsts = {known.shapes.get(value.name, ())[:1] for value in inputs}
    rows = next(iter(firsts))
    # Rows cannot be followed without an axis, or by an axis that has neither length nor name.
    if by_row and (len(firsts) > 1 or rows in ((), (None,))):
        return False
    known.states.update((value.name, "affine") for value in inputs)
    return all(_advance(node, known, rows[0] if by_row else None) for node in graph.node)


def _advance(node: Any, known: _Graph, rows: int | str | None) -> bool:
    """Enter the states of the node's outputs; False if it is not affine."""
    # What a subgraph or another domain's operator computes is not known here.
    if any(attribute.HasField("g") or attribute.graphs for attribute in node.attribute) or node.domain not in (
        "",
        "ai.onnx",
    ):
        return False
    found = {known.states[name] for name in node.input}
    state: State = "affine" if "affine" in found else "size" if "size" in found else "constant"
    if node.op_type in ("Shape", "Size"):
        state = "size"
    known.states.update(dict.fromkeys(node.output, state))
    if state != "affine":
        return node.op_type not in RANDOM
    return _is_listed(node, known) and (rows is None or _keeps_rows(node, known, rows))


def _is_listed(node: Any, known: _Graph) -> bool:
    dependent = [index for index, name in enumerate(node.input) if known.states[name] == "affine"]
    if node.op_type in FIRST:
        return dependent == [0] and _is_plain(node)
    if node.op_type in PRODUCTS:
        return len(dependent) == 1
    if node.op_type == "Gemm":
        return len([index for index in dependent if index < 2]) <= 1  # noqa: PLR2004 - the two factors
    return node.op_type in SUMS


def _is_plain(node: Any) -> bool:
    """Whether the node does not train or cast to integers."""
    from onnx import TensorProto

    attributes = _attributes(node)
    match node.op_type:
        case "Dropout":
            return len(node.input) < 3 or not node.input[2]  # noqa: PLR2004 - the third input is training_mode
        case "BatchNormalization":
            return not attributes.get("training_mode")
        case "Cast":
            return attributes["to"] in (
                TensorProto.FLOAT,
                TensorProto.DOUBLE,
                TensorProto.FLOAT16,
                TensorProto.BFLOAT16,
            )
        case _:
            return True


def _keeps_rows(node: Any, known: _Graph, rows: int | str) -> bool:
    """Row i of each output depends only on row i of the inputs, in the same way for every i."""
    ranks = {len(known.shapes.get(name, ())) for name in node.input if known.states[name] == "affine"}
    if any(known.shapes.get(name, ())[:1] != (rows,) for name in node.output if name) or len(ranks) != 1:
        return False
    if node.op_type not in SHAPED_BY_SIZES and any(known.states[name] == "size" for name in node.input):
        return False
    rank = max(ranks)
    if node.op_type in SPREAD:
        fixed = [name for name in node.input if known.states[name] != "affine"]
        return all(_is_alike_for_rows(known.shapes.get(name), rank) for name in fixed)
    rule = _ROW_RULES.get(node.op_type)
    return rule is None or rule(node, known, rank)


def _is_alike_for_rows(shape: tuple[int | str | None, ...] | None, rank: int) -> bool:
    return shape is not None and (len(shape) < rank or (len(shape) == rank and shape[0] == 1))


def _product(node: Any, known: _Graph, _: int) -> bool:
    """x[rows, ..., k] @ w[k, m], or w[m, k] @ x[rows, ..., k, n]."""
    left, right = (known.shapes.get(name, ()) for name in node.input[:2])
    if known.states[node.input[0]] == "affine":
        is_matrix = 0 < len(right) <= 2  # noqa: PLR2004 - or a vector
        return len(left) > 1 and (is_matrix or _is_alike_for_rows(right or None, len(left)))
    return len(right) > 2 and _is_alike_for_rows(left or None, len(right))  # noqa: PLR2004 - a stack of matrices


def _gemm(node: Any, known: _Graph, rank: int) -> bool:
    bias = node.input[2] if len(node.input) > 2 else ""  # noqa: PLR2004 - the third input
    plain = known.states[node.input[0]] == "affine" and not _attributes(node).get("transA", 0)
    return plain and (not bias or (known.states[bias] != "affine" and _is_alike_for_rows(known.shapes.get(bias), rank)))


def _axes(position: int, attribute: str, default: int | None = None) -> Callable[[Any, _Graph, int], bool]:
    """The axes in that input or attribute are known and do not include the first one."""

    def rule(node: Any, known: _Graph, rank: int) -> bool:
        axes = _attributes(node).get(attribute, default)
        if axes is None and len(node.input) > position and node.input[position]:
            axes = known.integers(node.input[position])
        if axes is None:
            return False
        return all(axis != 0 and axis > -rank for axis in (axes if isinstance(axes, list) else [axes]))

    return rule


def _pad(node: Any, known: _Graph, rank: int) -> bool:
    # Up to opset 10 they are an attribute.
    pads = _attributes(node).get("pads") or known.integers(node.input[1])
    given_axes = len(node.input) > 3 and bool(node.input[3])  # noqa: PLR2004 - the fourth input is `axes`
    return pads is not None and not given_axes and pads[0] == pads[rank] == 0


_ROW_RULES: Mapping[str, Callable[[Any, _Graph, int], bool]] = {
    "MatMul": _product,
    "Gemm": _gemm,
    # 99: these have their axis in an attribute only.
    "Concat": _axes(99, "axis"),
    "Split": _axes(99, "axis", 0),
    "Gather": _axes(99, "axis", 0),
    "Slice": _axes(3, "axes"),
    "Squeeze": _axes(1, "axes"),
    "Unsqueeze": _axes(1, "axes"),
    "ReduceSum": _axes(1, "axes"),
    "ReduceMean": _axes(1, "axes"),
    "Transpose": lambda node, *_: _attributes(node).get("perm", [1])[0] == 0,
    "Expand": lambda node, known, rank: len(known.shapes.get(node.output[0], ())) == rank,
    "Pad": _pad,
}
"""Further conditions, in addition to an unchanged first axis."""


def _attributes(node: Any) -> dict[str, Any]:
    from onnx import helper

    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}


def _length(dim: Any) -> int | str | None:
    if dim.HasField("dim_value"):
        return int(dim.dim_value)
    return str(dim.dim_param) or None
