"""Mask inputs of a contract, and which elements of other tensors belong to their positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from export_gate.wall.contract import ModelContract, Size, TensorSpec
from export_gate.worker.controls.sizes import Sizes
from export_gate.worker.controls.specs import tensor_leaves
from export_gate.worker.leaves.values import Leaf
from export_gate.worker.model.reference import Reference

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mask:
    """A mask input."""

    path: str
    spec: TensorSpec
    axes: tuple[str, ...]
    """Texts of its axes, without those of length 1; the last one lists positions, those before it rows."""

    @property
    def positions(self) -> str:
        """The text of the last axis."""
        return self.axes[-1]

    @property
    def rows(self) -> tuple[str, ...]:
        """The texts of the other axes."""
        return self.axes[:-1]

    @property
    def is_square(self) -> bool:
        """Whether each position has positions of its own, as in attention."""
        return self.positions in self.rows

    def array(self, leaves: Mapping[str, Leaf]) -> npt.NDArray[Any]:
        """Its values, without axes of length 1 that the contract writes as 1."""
        value = leaves[self.path].value
        assert value is not None
        array: npt.NDArray[Any] = value.reshape(self.lengths(value.shape))
        return array

    def lengths(self, shape: Sequence[int]) -> list[int]:
        """The lengths of its `axes` in a tensor of that shape; a dim counts even at size 1."""
        return [n for n, size in zip(shape, self.spec.shape, strict=True) if str(size) != "1"]


def masks_of(contract: ModelContract) -> tuple[Mask, ...]:
    """Declared masks, and tensors of 0 and 1 that may be one."""
    found = []
    for path, spec in tensor_leaves(contract):
        axes = tuple(str(size) for size in spec.shape if str(size) != "1")
        # Axes are matched by name, which a fixed length does not have.
        if axes and (spec.is_mask or spec.mask) and not axes[-1].isdigit():
            found.append(Mask(path=path, spec=spec, axes=axes))
    return tuple(found)


def spread(places: Bools, mask: Mask, axes: Sequence[str], shape: tuple[int, ...]) -> Bools | None:
    """The places of a mask over a tensor with those axes: an element is in one if any of its positions is.

    Dims are matched by name: every axis that lists the mask's positions counts, in any order, as does the tail `cur` of
    a mask over `past+cur`, and its head. None if the tensor lacks the positions or a row axis, or has a row twice. A
    square mask needs both of its axes: in which positions the others attend to says nothing of a position itself.
    """
    if len(axes) != len(shape):
        return None
    if mask.is_square:
        own = {text: [i for i, known in enumerate(axes) if known == text] for text in mask.axes}
        is_whole = all(len(found) == mask.axes.count(text) for text, found in own.items())
        return (
            np.broadcast_to(_placed(places, [own[t].pop(0) for t in mask.axes], len(shape)), shape)
            if is_whole
            else None
        )
    rows = [[i for i, text in enumerate(axes) if text == row] for row in mask.rows]
    if any(len(found) != 1 for found in rows):
        return None
    taken = [found[0] for found in rows]
    total: Bools | None = None
    for index, text in enumerate(axes):
        part = _part(places, mask, text, shape[index])
        if part is None or index in taken:
            continue
        at = _placed(part, [*taken, index], len(shape))
        total = at if total is None else np.logical_or(total, at)
    return None if total is None else np.broadcast_to(total, shape)


def of_keys(places: Bools, mask: Mask, axes: Sequence[str]) -> tuple[Bools, Mask]:
    """A square mask's positions that no query keeps, and the mask over them, for a tensor with one such axis."""
    if not mask.is_square or axes.count(mask.positions) > 1:
        return places, mask
    query = mask.axes.index(mask.positions)
    keys = tuple(text for index, text in enumerate(mask.axes) if index != query)
    return np.asarray(places.all(axis=query)), replace(mask, axes=keys)


def samples(empty: Bools, mask: Mask, axes: Sequence[str], shape: tuple[int, ...]) -> Bools | None:
    """Rows without any position over a tensor: by all row axes where it has them, else by the first one."""
    if not mask.rows or len(axes) != len(shape):
        return np.broadcast_to(empty, shape) if not mask.rows else None
    first = [i for i, text in enumerate(axes) if text == mask.rows[0]]
    if len(first) != 1:
        return None
    if len(mask.rows) > 1:
        rest = [next((i for i, text in enumerate(axes) if text == row), -1) for row in mask.rows[1:]]
        if -1 not in rest and len({*rest, first[0]}) == len(mask.rows):
            return np.broadcast_to(_placed(empty, [first[0], *rest], len(shape)), shape)
        # The tensor lacks some row axes: its sample is empty if any of the mask's rows in it is.
        empty = np.asarray(empty.any(axis=tuple(range(1, empty.ndim))))
    return np.broadcast_to(_placed(empty, first, len(shape)), shape)


def axes_of_outputs(
    contract: ModelContract, references: Sequence[tuple[Sizes, Reference]]
) -> dict[str, tuple[str, ...]]:
    """The text of each output axis: as declared, or that of the one dim expression that has its lengths everywhere.

    Args:
        contract: its inputs' axes are the expressions that are tried.
        references: sizes and eager's outputs at each control input.

    Returns:
        Output -> a text for each axis, empty for one of constant length, or if no or several expressions fit.
    """
    texts = {str(size): size for _, spec in tensor_leaves(contract) for size in spec.shape if not str(size).isdigit()}
    shapes: dict[str, list[tuple[tuple[int, ...], Sizes]]] = {}
    for sizes, reference in references:
        for leaf in reference.leaves:
            if leaf.value is not None:
                shapes.setdefault(leaf.name, []).append((leaf.value.shape, dict(sizes)))
    declared = {o.name: tuple(map(str, o.shape)) for o in contract.outputs if o.shape is not None}
    return {name: declared.get(name) or _axes_of(found, texts) for name, found in shapes.items()}


def _axes_of(shapes: Sequence[tuple[tuple[int, ...], Sizes]], texts: Mapping[str, Size]) -> tuple[str, ...]:
    if len({len(shape) for shape, _ in shapes}) != 1:
        return ()
    rank = len(shapes[0][0])
    return tuple(_axis_text([(shape[i], sizes) for shape, sizes in shapes], texts) for i in range(rank))


def _axis_text(lengths: Sequence[tuple[int, Sizes]], texts: Mapping[str, Size]) -> str:
    # A length that is always the same fits several expressions by chance.
    if len({length for length, _ in lengths}) == 1:
        return ""
    fitting = [text for text, size in texts.items() if all(size.at(sizes) == length for length, sizes in lengths)]
    return fitting[0] if len(fitting) == 1 else ""


def _part(places: Bools, mask: Mask, text: str, length: int) -> Bools | None:
    """The places along an axis: of all positions, or of the tail or head that the axis is."""
    if text == mask.positions:
        return places if places.shape[-1] == length else None
    terms = [term.strip() for term in mask.positions.split("+")]
    if len(terms) > 1 and text == terms[-1] and not text.isdigit():
        return places[..., places.shape[-1] - length :]
    if len(terms) > 1 and text == terms[0] and not text.isdigit():
        return places[..., :length]
    return None


def _placed(array: Bools, axes: Sequence[int], rank: int) -> Bools:
    """The array's axes put at those of a tensor; every other axis has length 1."""
    # First into the tensor's order of axes: a reshape moves no values, and would give a transposed mask other places.
    order = np.argsort(axes)
    shape = [1] * rank
    for position in order:
        shape[axes[position]] = array.shape[position]
    placed: Bools = array.transpose(order).reshape(shape)
    return placed
