"""Read the axes of an ExportedProgram's inputs: their lengths in the contract and in the program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, TensorArgument

from export_gate.wall.contract import Dim, ModelContract, Size
from export_gate.wall.observation import DimFound
from export_gate.worker.controls.sizes import allowed_sizes
from export_gate.worker.controls.specs import tensor_leaves


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """An axis of a tensor input."""

    leaf: str
    """Dotted name of the input leaf, e.g. `pyramid.0`."""
    index: int
    size: Size
    """The contract's length."""
    length: Any
    """The program's: `int` or `torch.SymInt`."""


def program_axes(program: ExportedProgram, contract: ModelContract) -> Iterator[Axis]:
    """Every axis of every tensor input, in the contract's order, which is also the program's.

    Raises:
        ValueError: the program's inputs are not those of the contract.
    """
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    arguments = [spec.arg for spec in program.graph_signature.input_specs if spec.kind is InputKind.USER_INPUT]
    values = [nodes[argument.name].meta["val"] for argument in arguments if isinstance(argument, TensorArgument)]
    for (leaf, spec), value in zip(tensor_leaves(contract), values, strict=True):
        for index, (size, length) in enumerate(zip(spec.shape, value.shape, strict=True)):
            yield Axis(leaf=leaf, index=index, size=size, length=length)


def is_static(dim: Dim) -> bool:
    """Whether the dim has only one size."""
    return dim.mode == "static" or len(allowed_sizes(dim)) == 1


def found_dims(
    program: ExportedProgram, axes: Iterable[Axis], contract: ModelContract, separate: Mapping[str, int]
) -> tuple[DimFound, ...]:
    """Each axis that was declared dynamic with the range that the program has for it; `separate` dims are fixed."""
    dims = {dim.name: dim for dim in contract.dims if dim.name not in separate and not is_static(dim)}
    return tuple(_found(axis, dims[axis.size.dim], program) for axis in axes if axis.size.dim in dims)


def _found(axis: Axis, dim: Dim, program: ExportedProgram) -> DimFound:
    declared = (axis.size.at({dim.name: dim.min}), axis.size.at({dim.name: dim.max}))
    found = _bounds(axis.length, program, declared)
    return DimFound(
        axis=f"{axis.leaf}[{axis.index}]",
        dim=dim.name,
        declared=declared,
        found=found,
        specialized=declared[0] != declared[1] and not _has_symbol(axis.length),
    )


def _bounds(length: Any, program: ExportedProgram, declared: tuple[int, int]) -> tuple[int, int]:
    """Range of an axis in the program; unbounded sides count as declared."""
    from torch.utils._sympy.value_ranges import bound_sympy

    if not _has_symbol(length):
        return (int(length), int(length))
    bounds = bound_sympy(length.node.expr, program.range_constraints)
    return (
        int(bounds.lower) if bounds.lower.is_finite else declared[0],
        int(bounds.upper) if bounds.upper.is_finite else declared[1],
    )


def _has_symbol(length: Any) -> bool:
    """Whether the length varies; a specialised axis can still be a SymInt."""
    return isinstance(length, torch.SymInt) and not length.node.expr.is_number
