"""Describe outputs by what forward returned at two settings of the dims: which dim each axis follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from export_gate.wall.contract import Size
from export_gate.wall.description import Found
from export_gate.worker.controls.sizes import Sizes
from export_gate.worker.guess.layers import BATCH, EDGES, NODES, SEQ
from export_gate.worker.leaves.values import Leaf

FIRST, SECOND = {BATCH: 2, SEQ: 9, NODES: 13, EDGES: 19}, {BATCH: 3, SEQ: 11, NODES: 17, EDGES: 25}
"""Sizes to try: all different, so that an output's axes show which dim they follow."""


def find_outputs(first: Sequence[Leaf], second: Sequence[Leaf], used: Sequence[str]) -> tuple[Found, ...]:
    """The outputs as they were at `FIRST` and at `SECOND`; none if their number depends on the sizes."""
    if [leaf.name for leaf in first] != [leaf.name for leaf in second]:
        return ()
    return tuple(
        Found(name=a.name, dtype=a.dtype, shape=_shape(a, b, used), nonfinite=_has_nonfinite(a))
        for a, b in zip(first, second, strict=True)
    )


def confirmed(outputs: Sequence[Found], leaves: Sequence[Leaf], sizes: Sizes) -> tuple[Found, ...]:
    """The outputs as they also are in this run: those of another shape without it, none if the names differ."""
    if [leaf.name for leaf in leaves] != [found.name for found in outputs]:
        return ()
    return tuple(
        found if found.shape is None or _has_shape(leaf, found.shape, sizes) else replace(found, shape=None)
        for found, leaf in zip(outputs, leaves, strict=True)
    )


def _has_shape(leaf: Leaf, shape: Sequence[Size], sizes: Sizes) -> bool:
    return leaf.value is not None and leaf.value.shape == tuple(size.at(sizes) for size in shape)


def _shape(first: Leaf, second: Leaf, used: Sequence[str]) -> tuple[Size, ...] | None:
    """Each axis as the dim that has its length at both sizes, or as a constant."""
    if first.value is None or second.value is None or first.value.ndim != second.value.ndim:
        return None
    axes = [_axis(a, b, used) for a, b in zip(first.value.shape, second.value.shape, strict=True)]
    return None if None in axes else tuple(axis for axis in axes if axis is not None)


def _axis(first: int, second: int, used: Sequence[str]) -> Size | None:
    if first == second:
        return Size(offset=first)
    found = []
    for name in used:
        factor, rest = divmod(second - first, SECOND[name] - FIRST[name])
        offset = first - factor * FIRST[name]
        # Only a sequence gets longer or shorter by a constant, as by a class token or a convolution without padding.
        if factor > 0 and rest == 0 and (offset == 0 or name == SEQ):
            found.append(Size(factors={name: factor}, offset=offset))
    return min(found, key=lambda size: size.offset != 0, default=None)


def _has_nonfinite(leaf: Leaf) -> bool:
    return leaf.value is not None and leaf.value.dtype.kind == "f" and not np.isfinite(leaf.value).all()
