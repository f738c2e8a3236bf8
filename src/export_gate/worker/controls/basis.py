"""Affine control reduction: the d+1 points at which two affine functions must agree to agree everywhere."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import partial

import torch

from export_gate.wall.contract import ModelContract, Size, TensorSpec
from export_gate.worker.controls.intervals import Interval, float_interval, is_restricted, torch_dtype
from export_gate.worker.controls.made import has_makers
from export_gate.worker.controls.record import ControlCase, case_name
from export_gate.worker.controls.sizes import Sizes
from export_gate.worker.controls.specs import build_values, elements_at, shape_at, tensor_leaves, total_elements
from export_gate.worker.leaves.values import Values

LIMIT = 4096
"""Elements of the input space beyond which there are no basis points."""
LIMIT_CASES = 512
"""Calls beyond which there are none, where points cannot share a batch."""
LONGEST_BATCH = 64
"""Rows that share a call: enough for all points of the largest space in 65 calls."""
FLOATS = ("float64", "float32", "float16", "bfloat16")


@dataclass(frozen=True, slots=True, kw_only=True)
class Corner:
    """One input's origin and step: its points are `origin` and `origin + step * e_i`."""

    origin: float
    step: float


def affine_cases(contract: ModelContract, sizes: Sizes) -> tuple[ControlCase, ...]:
    """The points {0, e_1, ..., e_d} of the joint space of all floating-point inputs, at these sizes.

    With a dim that leads every input, the points of one row are packed into the rows of batches: then d counts one
    row's elements, and the graph must keep rows apart (`is_affine_graph(by_row=True)`). Where 0 or 1 is outside a
    declared range, the points are moved and scaled into it: an affine function is determined by any d+1 affinely
    independent points. Such cases are named `basis-scaled-1@...`.

    Empty if an input is not a real floating-point tensor, has only one value or an order, or if points are too many.
    """
    leaves = tensor_leaves(contract)
    if not leaves or has_makers(contract) or any(_is_bound(spec) for _, spec in leaves):
        return ()
    rows = packs_rows(contract)
    if rows is not None:
        # Of one row: the batch is not chosen yet.
        sizes = {**sizes, rows: _batch(contract, rows, total_elements(contract, {**sizes, rows: 1}))}
    corners = {path: _corner(spec.at(sizes)) for path, spec in leaves}
    batch = 1 if rows is None else sizes[rows]
    dimension = total_elements(contract, sizes) // max(batch, 1)
    calls = -(-(dimension + 1) // max(batch, 1))
    if any(corner.step == 0 for corner in corners.values()) or not 0 < dimension <= LIMIT or calls > LIMIT_CASES:
        return ()
    plain = all(corner == Corner(origin=0.0, step=1.0) for corner in corners.values())
    label = "basis" if plain else "basis-scaled"
    return tuple(
        ControlCase(
            name=case_name(f"{label}-{call + 1}", sizes),
            family=label,
            group="affine",
            sizes=dict(sizes),
            make=partial(_points, contract, sizes, corners, range(call * batch, (call + 1) * batch)),
        )
        for call in range(calls)
    )


def _is_bound(spec: TensorSpec) -> bool:
    """Whether its values are not real numbers, or depend on each other."""
    return spec.dtype not in FLOATS or spec.order is not None or bool(spec.positions)


def packs_rows(contract: ModelContract) -> str | None:
    """The dim that is the first axis of every tensor input and nothing else, so that rows can carry points."""
    leaves = [spec for _, spec in tensor_leaves(contract)]
    firsts = {str(spec.shape[0]) if spec.shape else "" for spec in leaves}
    # A dim that also counts something else would change that with the number of rows.
    later = {dim for spec in leaves for size in (*spec.shape[1:], *_bounds(spec)) for dim in size.factors}
    name = next(iter(firsts)) if len(firsts) == 1 else ""
    dims = [dim for dim in contract.dims if dim.name == name and name not in later and dim.mode != "static"]
    return name if dims and dims[0].sizes[-1] > 1 else None


def _bounds(spec: TensorSpec) -> list[Size]:
    """The bounds that depend on sizes."""
    return [bound for bound in spec.range or () if isinstance(bound, Size)]


def _batch(contract: ModelContract, rows: str, dimension: int) -> int:
    """The longest batch that the points fill, up to a bound; the shortest allowed one where even that is too long."""
    sizes = contract.dim(rows).sizes
    # Slices, because a range may have millions of sizes.
    allowed = sizes[bisect_left(sizes, 1) :]
    fitting = allowed[: bisect_right(allowed, min(dimension + 1, LONGEST_BATCH))]
    return fitting[-1] if fitting else allowed[0]


def _corner(spec: TensorSpec) -> Corner:
    """0 and 1 where the input admits them, else the nearest such pair that it does."""
    if is_restricted(spec):
        allowed = sorted(set(spec.values), key=lambda value: (abs(value), value))
        # One value alone gives a step of 0, for which `affine_cases` makes no points.
        pair = allowed[:2] if len(allowed) > 1 else allowed * 2
        return Corner(origin=pair[0], step=pair[1] - pair[0])
    interval = float_interval(spec)
    origin = interval.clamp(0.0)
    return Corner(origin=origin, step=_step(interval, origin))


def _step(interval: Interval, origin: float) -> float:
    for step in (1.0, -1.0):
        if interval.low <= origin + step <= interval.high:
            return step
    return interval.high - origin if interval.high > origin else interval.low - origin


def _points(contract: ModelContract, sizes: Sizes, corners: dict[str, Corner], points: range) -> Values:
    """Point 0 is the origin, point k moves element k-1 of the joint space; points past the last are the origin again.

    One point fills the whole input, or one row of it each where there are several.
    """
    offsets: dict[str, int] = {}
    total = 0
    for path, spec in tensor_leaves(contract):
        offsets[path] = total
        total += elements_at(spec, sizes) // len(points)

    def leaf(path: str, spec: TensorSpec) -> torch.Tensor:
        corner, shape = corners[path], shape_at(spec, sizes)
        # In float64, so that origin plus step is rounded to the element type once.
        values = torch.full((len(points), elements_at(spec, sizes) // len(points)), corner.origin, dtype=torch.float64)
        for row, point in enumerate(points):
            element = point - 1 - offsets[path]
            if 0 <= element < values.shape[1]:
                values[row, element] += corner.step
        return values.to(torch_dtype(spec.dtype)).reshape(shape)

    return build_values(contract, leaf)
