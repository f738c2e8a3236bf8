"""Export a fresh module with a reference call and the contract's Dims."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.export import Dim, ExportedProgram

from export_gate.wall import contract as promised
from export_gate.wall.contract import ConstantSpec, DictSpec, ModelContract, SequenceSpec, Size, Spec, TensorSpec
from export_gate.wall.observation import Failure
from export_gate.worker.export.axes import Axis, declared_range, fixed_sizes, program_axes, restore_sums
from export_gate.worker.export.guard_lines import GuardLine, noted_guards
from export_gate.worker.leaves.values import Call
from export_gate.worker.model.factory import Parameter, bind


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """One ExportedProgram, with its axes as the contract writes them."""

    program: ExportedProgram
    call: Call
    """The reference call it was traced with."""
    separate: dict[str, int]
    """Dims fixed at one size for this export."""
    axes: tuple[Axis, ...]
    """Every axis of every tensor input."""
    guards: tuple[GuardLine, ...] = ()
    """Every guard on sizes that torch added while it traced."""


def export_program(
    module: torch.nn.Module,
    call: Call,
    contract: ModelContract,
    parameters: Sequence[Parameter],
    separate: Mapping[str, int],
    *,
    guards: list[GuardLine] | None = None,
) -> Exported:
    """Export with explicit Dims; dims named in `separate` are static.

    Args:
        module: exported in place: its `forward` may be given other parameter names, and its weights want no gradients.
        call: the reference call to trace with.
        contract: of the model.
        parameters: of `forward`.
        separate: dim -> the size that it has in this export.
        guards: takes the guards that torch adds, also those of an export that fails.

    Raises:
        Exception: any error of torch.export; the caller records it and applies `in_contract_words`.
    """
    spelled = _spelled_keywords(call, parameters)
    if spelled != tuple(parameters):
        _spell_forward(module, spelled)
    shapes = dynamic_shapes(contract, spelled, separate)
    noted: list[GuardLine] = [] if guards is None else guards
    # The decompositions of a program whose weights want gradients take other kernels than no_grad does: attention with
    # a learned bias is then traced with strides that a later view cannot have (torch 2.13).
    module.requires_grad_(requires_grad=False)
    with torch.no_grad(), noted_guards(noted):
        program = torch.export.export(module, call.args, call.kwargs, dynamic_shapes=shapes, strict=contract.strict)
    axes = tuple(program_axes(program, contract, fixed_sizes(contract, separate)))
    restore_sums(program, axes, contract)
    return Exported(program=program, call=call, separate=dict(separate), axes=axes, guards=tuple(noted))


def dynamic_shapes(
    contract: ModelContract, parameters: Sequence[Parameter], separate: Mapping[str, int]
) -> dict[str, Any]:
    """`torch.export.export`'s `dynamic_shapes`, by parameter name; parameters without a value are omitted."""
    fixed, names = fixed_sizes(contract, separate), torch_names(contract)
    dims = {dim.name: _torch_dim(dim, names[dim.name]) for dim in contract.dims if dim.name not in fixed}

    def axis_spec(size: Size) -> Any:
        left = size.fixed(fixed)
        return _axis_spec(left, declared_range(left, contract), dims) if left.factors else None

    shapes = bind({name: _shape_spec(spec, axis_spec) for name, spec in contract.inputs.items()}, parameters)
    return named_arguments(shapes, parameters)


def named_arguments(call: Call, parameters: Sequence[Parameter]) -> dict[str, Any]:
    """The call's values by the names that the program has for them; those passed through `**kwargs` by their own."""
    spelled = _spelled_keywords(call, parameters)
    return dict(_signature(spelled).bind(*call.args, **call.kwargs).arguments)


def torch_names(contract: ModelContract) -> dict[str, str]:
    """Declared dim -> the name of the torch Dim behind it.

    torch parses names with sympy, in which `N`, `S` or `beta` are functions and constants, and then fails on a relation
    between sizes. Such a dim gets a leading underscore, and so does one with `multiple-of`, whose torch Dim counts the
    steps.
    """
    names: dict[str, str] = {}
    for dim in contract.dims:
        name = dim.name if dim.multiple_of == 1 and _is_plain_symbol(dim.name) else f"_{dim.name}"
        # The underscores must not lead to the name of another dim.
        while name != dim.name and name in {other.name for other in contract.dims} | set(names.values()):
            name = f"_{name}"
        names[dim.name] = name
    return names


def in_contract_words(failure: Failure, contract: ModelContract) -> Failure:
    """Replace torch's names of the dims in an export's failure with the contract's."""
    # Where torch's Dim counts steps, the numbers beside its name are steps as well, so the name stays.
    names = {torch_names(contract)[dim.name]: dim.name for dim in contract.dims if dim.multiple_of == 1}
    # `(?!)` matches nothing, where an empty pattern would match everywhere.
    pattern = re.compile("|".join(rf"\b{re.escape(name)}\b" for name in names if name != names[name]) or "(?!)")

    def restored(text: str) -> str:
        return pattern.sub(lambda found: names[found[0]], text)

    return replace(
        failure,
        message=restored(failure.message),
        suggestions=tuple(map(restored, failure.suggestions)),
        trace=restored(failure.trace),
    )


def _is_plain_symbol(name: str) -> bool:
    import sympy  # type: ignore[import-untyped] # it has no stubs

    # Words such as `lambda` do not parse; `None`, `beta` or `S` are something else than a symbol.
    try:
        return bool(sympy.sympify(name) == sympy.Symbol(name))
    except (sympy.SympifyError, TypeError, AttributeError):
        return False


def _torch_dim(dim: promised.Dim, name: str) -> Any:
    """A torch Dim, or None if torch is to find out how its axes are related."""
    if dim.mode == "auto":
        return None
    # torch knows multiples only as a relation to another Dim, which counts the steps.
    steps = Dim(name, min=dim.steps.start, max=dim.steps.stop - 1)
    return steps if dim.multiple_of == 1 else steps * dim.multiple_of


def _shape_spec(spec: Spec, axis_spec: Callable[[Size], Any]) -> Any:
    match spec:
        case TensorSpec():
            axes = {index: axis_spec(size) for index, size in enumerate(spec.shape)}
            return {index: axis for index, axis in axes.items() if axis is not None}
        case SequenceSpec():
            items = [_shape_spec(item, axis_spec) for item in spec.items]
            return tuple(items) if spec.kind == "tuple" else items
        case DictSpec():
            return {key: _shape_spec(item, axis_spec) for key, item in spec.items.items()}
        case ConstantSpec():
            return None


def _axis_spec(size: Size, declared: tuple[int, int], dims: Mapping[str, Any]) -> Any:
    """An axis as torch declares it; torch cannot declare a sum of dims, and finds out how such an axis is related."""
    dim = None if size.dim is None else dims[size.dim]
    if size.dim is None or dim is None:
        return Dim.AUTO(min=declared[0], max=declared[1])
    # `1 * dim` and `dim + 0` are derived Dims to torch, not the Dim itself.
    factor = size.factors[size.dim]
    scaled = dim if factor == 1 else factor * dim
    return scaled if size.offset == 0 else scaled + size.offset


def _signature(parameters: Sequence[Parameter]) -> inspect.Signature:
    return inspect.Signature(
        [inspect.Parameter(p.name, p.kind, default=inspect.Parameter.empty if p.required else None) for p in parameters]
    )


def _spelled_keywords(call: Call, parameters: Sequence[Parameter]) -> tuple[Parameter, ...]:
    """The parameters with `**kwargs` replaced by the names that the call passes through it."""
    known = {parameter.name for parameter in parameters}
    further = [
        Parameter(name=name, kind=inspect.Parameter.KEYWORD_ONLY, required=True)
        for name in call.kwargs
        if name not in known
    ]
    if not further:
        return tuple(parameters)
    return (*(p for p in parameters if p.kind is not inspect.Parameter.VAR_KEYWORD), *further)


def _spell_forward(module: torch.nn.Module, parameters: Sequence[Parameter]) -> None:
    """Give forward a signature that names the arguments that it accepts through `**kwargs`.

    torch.export does not accept dims for such arguments ("Must provide a tree_name when there might be a mismatch",
    torch 2.13): it looks up each of them both by its own name and under the name of `**kwargs`.
    """
    forward = module.forward

    @functools.wraps(forward)
    def spelled(*args: Any, **kwargs: Any) -> Any:
        return forward(*args, **kwargs)

    spelled.__signature__ = _signature(parameters)  # type: ignore[attr-defined] # inspect.signature reads it
    module.forward = spelled
