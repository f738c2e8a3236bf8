"""A fresh module, a reference call and the contract's Dims to an ExportedProgram."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import Dim, ExportedProgram

from export_gate import contract as promised
from export_gate.contract import ConstantSpec, DictSpec, ModelContract, SequenceSpec, Size, Spec, TensorSpec
from export_gate.observation import DimFound
from export_gate.worker.controls.specs import tensor_leaves
from export_gate.worker.model import Parameter
from export_gate.worker.values import Call


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """One ExportedProgram and how its axes are spelled in the contract."""

    program: ExportedProgram
    call: Call
    """The reference call it was traced with."""
    separate: dict[str, int]
    """Dims fixed at one size for this export."""
    axes: tuple[Axis, ...]
    """Every axis of every tensor input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """An axis of a tensor input: what the contract and the program say its length is."""

    leaf: str
    """Dotted name of the input leaf, e.g. `pyramid.0`."""
    index: int
    size: Size
    length: Any
    """`int` or `torch.SymInt` in the program."""


def export_program(
    module: torch.nn.Module,
    call: Call,
    contract: ModelContract,
    parameters: Sequence[Parameter],
    separate: Mapping[str, int],
) -> Exported:
    """Export with explicit Dims; dims named in `separate` are static.

    Raises:
        Exception: whatever torch.export raises; the caller records it.
    """
    shapes = dynamic_shapes(contract, parameters, separate)
    with torch.no_grad():
        program = torch.export.export(
            module, call.args, call.kwargs, dynamic_shapes=shapes, strict=_is_strict(contract)
        )
    return Exported(
        program=program,
        call=call,
        separate=dict(separate),
        axes=tuple(_axes(program, contract)),
    )


def dynamic_shapes(
    contract: ModelContract, parameters: Sequence[Parameter], separate: Mapping[str, int]
) -> dict[str, Any]:
    """`torch.export.export`'s `dynamic_shapes`, by parameter name."""
    dims = {dim.name: _torch_dim(dim) for dim in contract.dims if dim.name not in separate and not is_static(dim)}
    specs = {name: _shape_spec(spec, dims) for name, spec in contract.inputs.items()}
    by_parameter: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            by_parameter[parameter.name] = tuple(v for k, v in specs.items() if k not in {p.name for p in parameters})
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
            by_parameter[parameter.name] = {k: v for k, v in specs.items() if k not in {p.name for p in parameters}}
        elif parameter.name in specs:
            by_parameter[parameter.name] = specs[parameter.name]
    return by_parameter


def is_static(dim: promised.Dim) -> bool:
    """Whether the dim has one size only."""
    return dim.mode == "static" or dim.min == dim.max


def found_dims(exported: Exported, contract: ModelContract) -> tuple[DimFound, ...]:
    """Each declared dynamic axis with the range that the program has for it."""
    return tuple(
        _found(axis, contract.dim(axis.size.dim), exported.program)
        for axis in exported.axes
        if axis.size.dim is not None
        and axis.size.dim not in exported.separate
        and not is_static(contract.dim(axis.size.dim))
    )


def _is_strict(contract: ModelContract) -> bool:
    return any(t.name == "exported-program" and t.strict for t in contract.targets)


def _torch_dim(dim: promised.Dim) -> Any:
    if dim.mode == "auto":
        return Dim.AUTO(min=dim.min, max=dim.max)
    if dim.multiple_of == 1:
        return Dim(dim.name, min=dim.min, max=dim.max)
    step = dim.multiple_of
    return Dim(f"_{dim.name}", min=-(-dim.min // step), max=dim.max // step) * step


def _shape_spec(spec: Spec, dims: Mapping[str, Any]) -> Any:
    match spec:
        case TensorSpec():
            sized = [(index, size, size.dim) for index, size in enumerate(spec.shape)]
            return {index: _axis_spec(size, dims[dim]) for index, size, dim in sized if dim is not None and dim in dims}
        case SequenceSpec():
            items = [_shape_spec(item, dims) for item in spec.items]
            return tuple(items) if spec.kind == "tuple" else items
        case DictSpec():
            return {key: _shape_spec(item, dims) for key, item in spec.items.items()}
        case ConstantSpec():
            return None


def _axis_spec(size: Size, dim: Any) -> Any:
    if (size.factor, size.offset) == (1, 0):
        return dim
    if not isinstance(dim, Dim):  # Dim.AUTO has no arithmetic: torch finds the relation itself
        return Dim.AUTO
    scaled = dim if size.factor == 1 else size.factor * dim
    return scaled if size.offset == 0 else scaled + size.offset


def _axes(program: ExportedProgram, contract: ModelContract) -> Iterator[Axis]:
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    names = [name for name in program.graph_signature.user_inputs if isinstance(name, str) and name in nodes]
    tensors = [val for name in names if isinstance(val := nodes[name].meta.get("val"), torch.Tensor)]
    for (leaf, spec), value in zip(tensor_leaves(contract), tensors, strict=False):
        for index, (size, length) in enumerate(zip(spec.shape, value.shape, strict=False)):
            yield Axis(leaf=leaf, index=index, size=size, length=length)


def _found(axis: Axis, dim: promised.Dim, program: ExportedProgram) -> DimFound:
    declared = (axis.size.at({dim.name: dim.min}), axis.size.at({dim.name: dim.max}))
    found = _bounds(axis.length, program, declared)
    return DimFound(
        axis=f"{axis.leaf}[{axis.index}]",
        dim=dim.name,
        declared=declared,
        found=found,
        specialized=found[0] == found[1] and declared[0] != declared[1],
    )


def _bounds(length: Any, program: ExportedProgram, declared: tuple[int, int]) -> tuple[int, int]:
    """Range of an axis in the program; unbounded sides count as declared."""
    from torch.utils._sympy.value_ranges import bound_sympy

    if not isinstance(length, torch.SymInt):
        return (int(length), int(length))
    expression = length.node.expr
    if expression.is_number:  # a specialised axis can still be a SymInt
        return (int(expression), int(expression))
    bounds = bound_sympy(expression, program.range_constraints)
    return (
        int(bounds.lower) if bounds.lower.is_finite else declared[0],
        int(bounds.upper) if bounds.upper.is_finite else declared[1],
    )
