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
from export_gate.worker.controls.sizes import reference_sizes
from export_gate.worker.controls.specs import tensor_leaves


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """An axis of a tensor input."""

    leaf: str
    """Dotted name of the input leaf, e.g. `pyramid.0`."""
    index: int
    size: Size
    """The contract's length; dims that have one size in this program are numbers in it."""
    length: Any
    """The program's: `int` or `torch.SymInt`."""


def program_axes(program: ExportedProgram, contract: ModelContract, fixed: Mapping[str, int]) -> Iterator[Axis]:
    """Every axis of every tensor input, in the contract's order, which is also the program's.

    Args:
        program: as exported.
        contract: what it was exported from.
        fixed: dims that have one size in it (see `fixed_sizes`).

    Raises:
        ValueError: the program's inputs are not those of the contract.
    """
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    arguments = [spec.arg for spec in program.graph_signature.input_specs if spec.kind is InputKind.USER_INPUT]
    values = [nodes[argument.name].meta["val"] for argument in arguments if isinstance(argument, TensorArgument)]
    # Strict: axes that are matched wrongly would blame the wrong dims.
    for (leaf, spec), value in zip(tensor_leaves(contract), values, strict=True):
        for index, (size, length) in enumerate(zip(spec.shape, value.shape, strict=True)):
            yield Axis(leaf=leaf, index=index, size=size.fixed(fixed), length=length)


def is_static(dim: Dim) -> bool:
    """Whether the dim has only one size."""
    return dim.mode == "static" or len(dim.sizes) == 1


def fixed_sizes(contract: ModelContract, separate: Mapping[str, int]) -> dict[str, int]:
    """The dims that have one size in an export: those of a separate one, and static ones."""
    reference = reference_sizes(contract)
    return {**{dim.name: reference[dim.name] for dim in contract.dims if is_static(dim)}, **separate}


def found_dims(program: ExportedProgram, axes: Iterable[Axis], contract: ModelContract) -> tuple[DimFound, ...]:
    """Each axis that was declared dynamic with the range that the program has for it."""
    return tuple(_found(axis, contract, program) for axis in axes if axis.size.factors)


def _found(axis: Axis, contract: ModelContract, program: ExportedProgram) -> DimFound:
    declared = declared_range(axis.size, contract)
    found = _bounds(axis.length, program, declared)
    return DimFound(
        axis=f"{axis.leaf}[{axis.index}]",
        dim=axis.size.dim or str(axis.size),
        declared=declared,
        found=found,
        specialized=declared[0] != declared[1] and not _has_symbol(axis.length),
    )


def declared_range(size: Size, contract: ModelContract) -> tuple[int, int]:
    """The least and the greatest length that the dims' ranges give an axis."""
    dims = [contract.dim(name) for name in size.factors]
    return size.at({dim.name: dim.min for dim in dims}), size.at({dim.name: dim.max for dim in dims})


def restore_sums(program: ExportedProgram, axes: Iterable[Axis], contract: ModelContract) -> None:
    """Give axes that are sums of dims the declared range.

    torch counts every symbol from 2 on in a sum's range, whatever its Dim says (2.13): `past + cur` would begin at 4
    and the program would refuse its first token. What it computes was traced without that bound.
    """
    from torch.utils._sympy.value_ranges import ValueRanges

    for axis in axes:
        if len(axis.size.factors) < 2 or not isinstance(axis.length, torch.SymInt):  # noqa: PLR2004 - a sum
            continue
        expression = axis.length.node.expr
        if expression in program.range_constraints:
            program.range_constraints[expression] = ValueRanges(*declared_range(axis.size, contract))


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
