"""Check whether a graph is affine in its inputs; then agreement at d+1 basis points is agreement everywhere.

A short allow-list decides; other operators are not affine. `x1 * x2` agrees with 0 at 0, e1 and e2, so it is refused.
"""

# ruff: noqa: SLF001 - many of torch's operators and their schemas begin with an underscore
from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.fx import Node

from export_gate.worker.onnx_file.affine import State

aten = torch.ops.aten

FIRST = frozenset({
    operator.getitem,
    aten.neg.default, aten.rsub.Scalar, aten.div.Tensor,
    aten.clone.default, aten.contiguous.default, aten.alias.default,
    aten.detach.default,
    aten._to_copy.default, aten.to.dtype, aten.to.dtype_layout,
    aten.linear.default, aten.conv1d.default, aten.conv2d.default, aten.conv3d.default,
    aten.conv1d.padding, aten.conv2d.padding, aten.convolution.default,
    aten.batch_norm.default, aten._native_batch_norm_legit_no_training.default, aten.dropout.default,
    aten.view.default, aten.reshape.default, aten._unsafe_view.default, aten.flatten.using_ints, aten.expand.default,
    aten.unsqueeze.default, aten.permute.default, aten.transpose.int, aten.t.default,
    aten.select.int, aten.slice.Tensor, aten.constant_pad_nd.default, aten.pad.default,
    aten.sum.default, aten.mean.default, aten.sum.dim_IntList, aten.mean.dim,
    aten.avg_pool1d.default, aten.avg_pool2d.default, aten.adaptive_avg_pool2d.default,
    aten._adaptive_avg_pool2d.default,
    aten.pixel_shuffle.default, aten.pixel_unshuffle.default,
    aten.upsample_nearest2d.vec, aten.upsample_bilinear2d.vec, aten._upsample_bilinear2d_aa.vec,
})  # fmt: skip
"""Affine in the first argument while all others are fixed."""
PRODUCTS = frozenset({aten.mul.Tensor, aten.matmul.default, aten.mm.default, aten.bmm.default})
"""Affine while one of the two factors is fixed."""
SUMS = frozenset({aten.add.Tensor, aten.sub.Tensor})
LISTS = frozenset({aten.cat.default, aten.stack.default})
SIZES = frozenset({aten.sym_size.int, aten.sym_numel.default})
CHECKS = frozenset({
    aten._assert_scalar.default, aten._assert_tensor_metadata.default, aten.sym_constrain_range_for_size.default,
})  # fmt: skip
SPREAD = SUMS | {aten.mul.Tensor, aten.div.Tensor}
"""Operators that broadcast a fixed operand over the rows."""
SHAPED_BY_SIZES = frozenset({
    aten.view.default, aten.reshape.default, aten._unsafe_view.default, aten.expand.default, aten.slice.Tensor,
})  # fmt: skip


def is_affine_graph(program: torch.export.ExportedProgram, *, by_row: bool = True) -> bool:
    """Every operator is affine in the program's floating-point inputs, and no state changes.

    Args:
        program: As exported, decomposed or not.
        by_row: Also require that rows along the inputs' common first axis stay independent and are treated the same.
            Basis points that are packed into the rows of one batch depend on this (`basis.packs_rows`).
    """
    signature = program.graph_signature
    if signature.buffers_to_mutate or signature.user_inputs_to_mutate:
        return False
    nodes = list(program.graph.nodes)
    inputs = [n for n in nodes if n.op == "placeholder" and n.name in signature.user_inputs]
    tensors = [n for n in inputs if isinstance(n.meta.get("val"), torch.Tensor)]
    # An integer input cannot take the basis points.
    if not tensors or not all(n.meta["val"].is_floating_point() for n in tensors):
        return False
    if by_row and any(n.meta["val"].dim() == 0 for n in tensors):
        return False
    rows = tensors[0].meta["val"].shape[0] if by_row else None
    if by_row and not all(_same(n.meta["val"].shape[0], rows) for n in tensors):
        return False
    states: dict[Node, State] = {
        n: "affine" if n in tensors else "constant" for n in nodes if n.op in ("placeholder", "get_attr")
    }
    return all(_advance(node, states, rows) for node in nodes if node.op == "call_function")


def _advance(node: Node, states: dict[Node, State], rows: Any) -> bool:
    """Enter the node's state; False if it is not affine."""
    found = {states[argument] for argument in node.all_input_nodes}
    if node.target in SIZES or node.target in CHECKS:
        states[node] = "size"
        # `_assert_tensor_metadata` reads dtype and shape; any other check may refuse a point for its values.
        return node.target in SIZES or "affine" not in found or node.target == aten._assert_tensor_metadata.default
    if "affine" not in found:
        states[node] = "size" if "size" in found else "constant"
        return _is_fixed(node)
    states[node] = "affine"
    if not _is_listed(node, states) or not _is_floating(node):
        return False
    return rows is None or _keeps_rows(node, states, rows)


def _is_fixed(node: Node) -> bool:
    """The node's value does not depend on the inputs and is the same at each call."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload):
        # Arithmetic on sizes is Python's: the module of `operator.mul` is `_operator`.
        return getattr(target, "__module__", "") in ("_operator", "math") or target in (torch.sym_max, torch.sym_min)
    return torch.Tag.nondeterministic_seeded not in target.tags and not target._schema.is_mutable


def _is_listed(node: Node, states: Mapping[Node, State]) -> bool:
    """The operator is affine in the arguments that depend on the input."""
    dependent = {argument for argument in node.all_input_nodes if states[argument] == "affine"}
    first = node.args[0] if node.args else None
    if node.target in FIRST:
        # The count, because `div(x, x)` depends on the input twice.
        return dependent == {first} and _is_plain(node) and node.args.count(first) == 1
    if node.target in PRODUCTS:
        return len([a for a in node.args[:2] if a in dependent]) == 1 and dependent <= set(node.args[:2])
    if node.target in SUMS:
        return dependent <= set(node.args[:2])
    if node.target in LISTS:
        return isinstance(first, (list, tuple)) and dependent <= set(first)
    if node.target == aten.addmm.default:
        return len([a for a in node.args[1:3] if a in dependent]) <= 1 and dependent <= set(node.args[:3])
    return False


def _is_plain(node: Node) -> bool:
    """Dropout and batch norm are affine only in inference, padding only with a constant."""
    position = {aten.dropout.default: 2, aten.batch_norm.default: 5}.get(node.target)
    if node.target == aten.pad.default:
        return node.args[2:3] in ((), ("constant",))
    return position is None or node.args[position] is False


def _is_floating(node: Node) -> bool:
    value = node.meta.get("val")
    # A cast to integers rounds, which is not affine.
    values = value if isinstance(value, (list, tuple)) else [value]
    return all(v.is_floating_point() for v in values if isinstance(v, torch.Tensor))


def _keeps_rows(node: Node, states: Mapping[Node, State], rows: Any) -> bool:
    """Row i of the result depends only on row i of the inputs, in the same way for every i."""
    result = node.meta.get("val")
    if isinstance(result, torch.Tensor) and (result.dim() == 0 or not _same(result.shape[0], rows)):
        return False
    # A size as an operand makes a row depend on how many rows share its batch.
    if node.target not in SHAPED_BY_SIZES and any(states[a] == "size" for a in node.all_input_nodes):
        return False
    values = {a: a.meta["val"] for a in node.all_input_nodes if isinstance(a.meta.get("val"), torch.Tensor)}
    ranks = {value.dim() for a, value in values.items() if states[a] == "affine"}
    # Operands of different ranks align at their last axes, so the rows of one are not those of the other.
    if len(ranks) > 1:
        return False
    rank = max(ranks, default=0)
    fixed = [value for a, value in values.items() if states[a] != "affine"]
    if node.target in SPREAD:
        return all(_is_alike_for_rows(value, rank) for value in fixed)
    if node.target in PRODUCTS:
        return _is_row_product(node.args[0], node.args[1], states, values)
    if node.target == aten.addmm.default:
        bias, left, right = node.args[:3]
        return _is_alike_for_rows(values[bias], rank) and _is_row_product(left, right, states, values)
    rule = _ROW_RULES.get(node.target)
    return rule is None or rule(node, rank)


def _is_alike_for_rows(value: torch.Tensor, rank: int) -> bool:
    """Broadcast to a tensor of that rank, the value is the same for each index of the first axis."""
    return bool(value.dim() < rank or (value.dim() == rank and value.shape[0] == 1))


def _is_row_product(left: Any, right: Any, states: Mapping[Node, State], values: Mapping[Node, torch.Tensor]) -> bool:
    """x[rows, ..., k] @ w[k, m], or w[m, k] @ x[rows, ..., k, n]."""
    if states[left] == "affine":
        rank = values[left].dim()
        return rank > 1 and (values[right].dim() <= 2 or _is_alike_for_rows(values[right], rank))  # noqa: PLR2004 - a matrix
    rank = values[right].dim()
    return rank > 2 and _is_alike_for_rows(values[left], rank)  # noqa: PLR2004 - a stack of matrices


def _axes_from(position: int, *, default: Any = None, extra: int = 0) -> Callable[[Node, int], bool]:
    """The axes in that argument do not include the first one; `extra` is for axes counted in the result."""

    def rule(node: Node, rank: int) -> bool:
        axes = node.args[position] if len(node.args) > position else default
        axes = axes if isinstance(axes, (list, tuple)) else [axes]
        # `%` counts negative axes from the front. No axes, or None, are all of them.
        return bool(axes) and all(isinstance(axis, int) and axis % (rank + extra) != 0 for axis in axes)

    return rule


def _is_rank(*ranks: int) -> Callable[[Node, int], bool]:
    return lambda _, rank: rank in ranks


def _never(_: Node, __: int) -> bool:
    return False


def _same_rank(node: Node, rank: int) -> bool:
    return bool(node.meta["val"].dim() == rank)


_ROW_RULES: dict[Any, Callable[[Node, int], bool]] = {
    aten.sum.default: _never,
    aten.mean.default: _never,
    aten.t.default: _never,
    aten.sum.dim_IntList: _axes_from(1),
    aten.mean.dim: _axes_from(1),
    aten.select.int: _axes_from(1),
    aten.slice.Tensor: _axes_from(1, default=0),
    aten.unsqueeze.default: _axes_from(1, extra=1),
    aten.transpose.int: lambda node, rank: all(axis % rank for axis in node.args[1:3]),
    aten.permute.default: lambda node, rank: node.args[1][0] % rank == 0,
    aten.cat.default: _axes_from(1, default=0),
    aten.stack.default: _axes_from(1, default=0, extra=1),
    aten.expand.default: _same_rank,
    # Pads count from the last axis.
    aten.constant_pad_nd.default: lambda node, rank: len(node.args[1]) <= 2 * (rank - 1),
    aten.pad.default: lambda node, rank: len(node.args[1]) <= 2 * (rank - 1),
    # A vector is one row of features, and what convolves with fewer axes has its channels first.
    aten.linear.default: lambda _, rank: rank > 1,
    aten.conv1d.padding: _is_rank(3),
    aten.conv2d.padding: _is_rank(4),
    aten.conv1d.default: _is_rank(3),
    aten.conv2d.default: _is_rank(4),
    aten.conv3d.default: _is_rank(5),
    aten.pixel_shuffle.default: _is_rank(4),
    aten.pixel_unshuffle.default: _is_rank(4),
}
"""Further conditions, in addition to an unchanged first axis."""


def _same(length: Any, rows: Any) -> bool:
    """Equal as expressions, without adding a guard to the program's sizes."""
    return bool(_expression(length) == _expression(rows))


def _expression(length: Any) -> Any:
    return length.node.expr if isinstance(length, torch.SymInt) else length
