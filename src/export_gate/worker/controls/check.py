"""Compare a project's own tensors with its contract, and read the dims' sizes from their shapes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy.typing as npt
import torch

from export_gate.wall.contract import Dim, ModelContract, Size, TensorSpec
from export_gate.wall.errors import UserError
from export_gate.worker.controls.intervals import admits
from export_gate.worker.controls.ordering import order_broken
from export_gate.worker.controls.sizes import Sizes, reference_sizes
from export_gate.worker.controls.specs import shape_text

Named = tuple[str, TensorSpec, tuple[int, ...]]
"""Input path, what was declared, the shape found."""


def check_dtype(place: str, path: str, spec: TensorSpec, array: torch.Tensor | npt.NDArray[Any]) -> None:
    """Check the declared element type.

    Raises:
        UserError: it has another.
    """
    # The text of NumPy's types has the byte order as well (`>f4`), their name does not.
    found = str(getattr(array.dtype, "name", array.dtype)).removeprefix("torch.")
    if found != spec.dtype:
        raise UserError(
            f"{place}: input '{path}': expected dtype {spec.dtype}, got {found}",
            f"Store it as {spec.dtype}, or declare `dtype: {found}`.",
        )


def check_values(place: str, path: str, spec: TensorSpec, tensor: torch.Tensor) -> None:
    """Check the declared range, values and non-finite policy.

    Raises:
        UserError: a value is outside.
    """
    objection = admits(spec, tensor) or order_broken(spec, tensor)
    if objection:
        raise UserError(
            f"{place}: input '{path}': {objection}", "Correct the values, or declare what the model accepts."
        )


def solve_sizes(contract: ModelContract, place: str, shapes: Iterable[Named]) -> Sizes:
    """Sizes of all dims, read off the axes that name them; those that no axis determines take their reference size.

    Raises:
        UserError: a shape is not the declared one, dims disagree between inputs, or a size is not allowed.
    """
    axes = [axis for path, spec, shape in shapes for axis in _axes_of(place, path, spec, shape)]
    found = solved(axes)
    for dim in contract.dims:  # what a sum alone does not separate: one dim after the other takes its usual size
        if any(dim.name in axis.size.factors for axis in axes) and dim.name not in found:
            found = solved(axes, {**found, dim.name: reference_sizes(contract)[dim.name]})
    for axis in axes:
        left = axis.size.fixed(found)
        if left.factors or left.offset != axis.length:
            known = ", ".join(f"{dim}={found[dim]}" for dim in axis.size.factors if dim in found)
            raise UserError(
                f"{place}: input '{axis.path}': axis {axis.index}: expected {axis.size}"
                f"{f' with {known}' if known else ''}, got {axis.length}",
                f"The declared shape is {shape_text(axis.spec.shape)}, the given one {_text(axis.shape)}.",
            )
    for name, value in found.items():
        _check_size(contract, place, contract.dim(name), value)
    return {**reference_sizes(contract), **found}


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenAxis:
    """An axis of a tensor that a project hands in."""

    path: str
    spec: TensorSpec
    shape: tuple[int, ...]
    index: int

    @property
    def size(self) -> Size:
        """As declared."""
        return self.spec.shape[self.index]

    @property
    def length(self) -> int:
        """As given."""
        return self.shape[self.index]


def solved(axes: Sequence[GivenAxis], known: Mapping[str, int] = MappingProxyType({})) -> Sizes:
    """Every dim that the axes determine together with the known ones.

    Gauss-Jordan elimination over fractions, one axis after the other: of two axes that contradict each other the first
    counts, and a dim whose value would not be whole is left out.
    """
    rows: dict[str, Row] = {}
    for axis in axes:
        left = axis.size.fixed(known)
        row = Row.of(left, axis.length)
        for dim, other in rows.items():
            row = row.without(dim, other)
        # An axis that adds nothing, or that contradicts the others, has no factor left; `solve_sizes` compares its
        # length.
        pivot = next((dim for dim, factor in row.factors.items() if factor), None)
        if pivot is not None:
            row = row.scaled(1 / row.factors[pivot])
            # Out of the earlier rows too, so that a dim that is determined stands alone in its row.
            rows = {**{dim: other.without(pivot, row) for dim, other in rows.items()}, pivot: row}
    alone = {dim: row.value for dim, row in rows.items() if sum(map(bool, row.factors.values())) == 1}
    return {**known, **{dim: int(value) for dim, value in alone.items() if value.denominator == 1}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """An equation: the dims with their factors make up the value."""

    factors: dict[str, Fraction]
    value: Fraction

    @classmethod
    def of(cls, size: Size, length: int) -> Row:
        """The equation that an axis of that length is."""
        factors = {dim: Fraction(factor) for dim, factor in size.factors.items()}
        return cls(factors=factors, value=Fraction(length - size.offset))

    def scaled(self, by: Fraction) -> Row:
        """Both sides multiplied."""
        return Row(factors={dim: by * factor for dim, factor in self.factors.items()}, value=by * self.value)

    def without(self, dim: str, other: Row) -> Row:
        """The row with the dim eliminated by another one, in which its factor is 1."""
        times = self.factors.get(dim, Fraction(0))
        names = dict.fromkeys((*self.factors, *other.factors))
        factors = {n: self.factors.get(n, Fraction(0)) - times * other.factors.get(n, Fraction(0)) for n in names}
        return Row(factors=factors, value=self.value - times * other.value)


def _axes_of(place: str, path: str, spec: TensorSpec, shape: tuple[int, ...]) -> list[GivenAxis]:
    if len(shape) != len(spec.shape):
        raise UserError(
            f"{place}: input '{path}': expected shape {shape_text(spec.shape)}, got {_text(shape)}",
            f"Give it {axes_text(len(spec.shape))}, not {len(shape)}.",
        )
    return [GivenAxis(path=path, spec=spec, shape=shape, index=index) for index in range(len(shape))]


def _check_size(contract: ModelContract, place: str, dim: Dim, size: int) -> None:
    static = dim.mode == "static"
    allowed = [reference_sizes(contract)[dim.name]] if static else dim.sizes
    if size in allowed or size in dim.separate:
        return
    wanted = f"{allowed[0]} (the dim is static)" if static else dim.text
    raise UserError(
        f"{place}: dim {dim.name}: expected {wanted}, got {size}",
        f"Widen models.{contract.name}.dims.{dim.name}, or leave this input out.",
    )


def axes_text(count: int) -> str:
    """`1 axis`, `2 axes`."""
    return "1 axis" if count == 1 else f"{count} axes"


def _text(shape: tuple[int, ...]) -> str:
    return f"[{', '.join(str(length) for length in shape)}]"
