"""Holds tensors that a project hands in against its contract, and reads the dims' sizes off their shapes."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from export_gate.wall.contract import Dim, ModelContract, TensorSpec
from export_gate.wall.errors import UserError
from export_gate.worker.controls.intervals import admits
from export_gate.worker.controls.sizes import Sizes, allowed_sizes, reference_sizes
from export_gate.worker.controls.specs import shape_text

Named = tuple[str, TensorSpec, tuple[int, ...]]
"""Input path, what was declared, the shape found."""


def check_dtype(place: str, path: str, spec: TensorSpec, tensor: torch.Tensor) -> None:
    """The declared element type.

    Raises:
        UserError: it has another.
    """
    found = str(tensor.dtype).removeprefix("torch.")
    if found != spec.dtype:
        raise UserError(
            f"{place}: input '{path}': expected dtype {spec.dtype}, got {found}\n"
            f"Store it as {spec.dtype}, or declare `dtype: {found}`."
        )


def check_values(place: str, path: str, spec: TensorSpec, tensor: torch.Tensor) -> None:
    """The declared range, values and non-finite policy.

    Raises:
        UserError: a value is outside.
    """
    objection = admits(spec, tensor)
    if objection:
        raise UserError(f"{place}: input '{path}': {objection}\nCorrect the values, or declare what the model accepts.")


def solve_sizes(contract: ModelContract, place: str, shapes: Iterable[Named]) -> Sizes:
    """Sizes of all dims; those that no given shape has take their reference size.

    Raises:
        UserError: a shape is not the declared one, dims disagree between inputs, or a size is not allowed.
    """
    found: Sizes = {}
    for path, spec, shape in shapes:
        if len(shape) != len(spec.shape):
            raise UserError(
                f"{place}: input '{path}': expected shape {shape_text(spec.shape)}, got {_text(shape)}\n"
                f"Give it {_axes(len(spec.shape))}, not {len(shape)}."
            )
        for axis, (size, length) in enumerate(zip(spec.shape, shape, strict=True)):
            if size.dim is None or size.factor == 0:
                fits = length == size.offset
            else:
                value, rest = divmod(length - size.offset, size.factor)
                fits = rest == 0 and found.setdefault(size.dim, value) == value
            if not fits:
                known = "" if size.dim not in found else f" with {size.dim}={found[size.dim]}"
                raise UserError(
                    f"{place}: input '{path}': axis {axis}: expected {size}{known}, got {length}\n"
                    f"The declared shape is {shape_text(spec.shape)}, the given one {_text(shape)}."
                )
    for name, value in found.items():
        _check_size(contract, place, contract.dim(name), value)
    return {**reference_sizes(contract), **found}


def _check_size(contract: ModelContract, place: str, dim: Dim, size: int) -> None:
    static = dim.mode == "static"
    allowed = [reference_sizes(contract)[dim.name]] if static else allowed_sizes(dim)
    if size in allowed or size in dim.separate:
        return
    steps = f" in steps of {dim.multiple_of}" if dim.multiple_of > 1 else ""
    wanted = f"{allowed[0]} (the dim is static)" if static else f"{dim.min}..{dim.max}{steps}"
    raise UserError(
        f"{place}: dim {dim.name}: expected {wanted}, got {size}\n"
        f"Widen models.{contract.name}.dims.{dim.name}, or omit this input."
    )


def _axes(count: int) -> str:
    return "1 axis" if count == 1 else f"{count} axes"


def _text(shape: tuple[int, ...]) -> str:
    return f"[{', '.join(str(length) for length in shape)}]"
