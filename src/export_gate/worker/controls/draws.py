"""Choose the draw families that fit a tensor input, and draw the tensor of one family."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch

from export_gate.wall.contract import TensorSpec
from export_gate.worker.controls.floats import draw_floats, fitting_families, sprinkle
from export_gate.worker.controls.integers import (
    KEPT_FAMILIES,
    draw_bools,
    draw_integers,
    draw_kept,
    fitting_bool_families,
    fitting_integer_families,
)
from export_gate.worker.controls.intervals import (
    float_interval,
    integer_bounds,
    is_restricted,
    is_undeclared,
    to_tensor,
    torch_dtype,
)
from export_gate.worker.controls.ordering import SPREAD, STRICT, ordered
from export_gate.worker.controls.specs import is_floating, is_integer
from export_gate.worker.controls.stream import Floats, Stream

REPEATED = frozenset((
    "normal", "uniform", "halves", "constant", "offset", "large", "nonfinite",
    "random", "duplicates", "distinct", "sparse", "right-padded", "right-masked", "left-padded", "holed", "row-off",
    "tail-off",
))  # fmt: skip
"""Families whose seeded draws differ; the others have one member each."""


IMAGE_RANK, IMAGE_SPAN = 3, 64
"""Axes and range of uint8 values from which a tensor may be an image."""
MASK_ENDS = {"low": "all-false", "high": "all-true"}
"""What integer families are called in a mask."""


def base_family(spec: TensorSpec) -> str:
    """The family that an input gets while another input's family is tried."""
    return families(spec)[0]


def families(spec: TensorSpec) -> tuple[str, ...]:
    """Families that fit the input, its base family first; `draws` narrows them as far as any of its names fits."""
    fitting = _fitting(spec)
    wanted = tuple(MASK_ENDS.get(name, name) for name in spec.draws) if spec.is_mask else spec.draws
    # If none of the names fits, the base family is left: an input cannot go without values.
    return tuple(family for family in fitting if family in wanted) or (fitting[:1] if wanted else fitting)


def draw(spec: TensorSpec, shape: tuple[int, ...], family: str, index: int, stream: Stream) -> torch.Tensor:
    """The contiguous tensor of one family, in the declared order; unknown families give the base one."""
    return ordered(spec, _drawn(spec, shape, family, index, stream)).contiguous()


def _drawn(spec: TensorSpec, shape: tuple[int, ...], family: str, index: int, stream: Stream) -> torch.Tensor:
    # Before integers: a mask of integers has a range as well.
    if spec.is_mask:
        row = shape[-1] if shape else 1
        # A copy: torch takes no view that runs backwards, as a left-padded mask does.
        mask = torch.from_numpy(_mask(spec, family, math.prod(shape[:-1]), row, stream=stream).copy())
        return mask.to(torch_dtype(spec.dtype)).reshape(shape)
    if spec.positions:
        columns = [replace(spec, values=allowed, positions=(), shape=spec.shape[:-1]) for allowed in spec.positions]
        return torch.stack([_drawn(column, shape[:-1], family, index, stream) for column in columns], dim=-1)
    if is_restricted(spec):
        return _draw_allowed(spec, shape, family, index, stream)
    count = math.prod(shape)
    if is_integer(spec):
        integers = draw_integers(family, *integer_bounds(spec), count, stream)
        return torch.from_numpy(integers).to(torch_dtype(spec.dtype)).reshape(shape)
    # A complex element is drawn as two reals.
    width = 2 if spec.dtype.startswith("complex") else 1
    row = (shape[-1] if shape else 1) * width
    values = draw_floats(family, float_interval(spec), count * width, stream, row)
    return to_tensor(spec, _with_nonfinite(spec, values, shape, family=family, index=index, stream=stream), shape)


def _is_image(spec: TensorSpec) -> bool:
    low, high = integer_bounds(spec)
    return spec.dtype == "uint8" and len(spec.shape) >= IMAGE_RANK and high - low >= IMAGE_SPAN


def _mask(spec: TensorSpec, family: str, rows: int, row: int, *, stream: Stream) -> npt.NDArray[np.bool_]:
    """Draw a mask: one that declares what 1 means keeps a position in each row; any other is drawn freely."""
    if spec.mask not in ("keep", "drop") or rows * row == 0:
        return draw_bools(family, rows, row, stream)
    kept = draw_kept(family, rows, row, stream)
    return kept if spec.mask == "keep" else ~kept


def _fitting(spec: TensorSpec) -> tuple[str, ...]:
    dims = [size for size in spec.shape if size.factors]
    # With a dim, most sizes have more than one element; how many does not matter beyond that.
    count = 2 if dims else math.prod(size.offset for size in spec.shape)
    if spec.is_mask:
        known = fitting_bool_families(len(spec.shape), count)
        return tuple(name for name in known if name in KEPT_FAMILIES) if spec.mask in ("keep", "drop") else known
    if spec.make is not None:
        return ("normal",) if is_floating(spec) else ("random",)
    if is_restricted(spec):
        return _fitting_allowed(spec)
    if is_integer(spec):
        known = fitting_integer_families(*integer_bounds(spec), count)
        return (*known, "spots") if _is_image(spec) and "distinct" in known else known
    if is_undeclared(spec):
        return ("normal", "nonfinite") if spec.nonfinite else ("normal",)
    fitting = fitting_families(float_interval(spec), spec.nonfinite)
    return tuple(family for family in fitting if spec.order != STRICT or family in SPREAD)


def _with_nonfinite(
    spec: TensorSpec, values: Floats, shape: tuple[int, ...], *, family: str, index: int, stream: Stream
) -> Floats:
    if family != "nonfinite" or not spec.nonfinite:
        return values
    # Two reals for each complex element.
    row = (shape[-1] if shape else 1) * (values.size // max(math.prod(shape), 1))
    return sprinkle(values, row, spec.nonfinite, index, stream)


def _fitting_allowed(spec: TensorSpec) -> tuple[str, ...]:
    """Families over a list of allowed values: any of them, the least, the greatest, zero, one other, all in turn."""
    base = "normal" if is_floating(spec) else "random"
    allowed = sorted({*spec.values, *(value for values in spec.positions for value in values)})
    if len(allowed) == 1:
        return (base,)
    if is_integer(spec):
        return (base, "low", "high", "distinct")
    zeros = ("zeros",) if 0 in allowed[1:-1] else ()
    return (base, "low", "high", *zeros, "sweep", *(("nonfinite",) if spec.nonfinite else ()))


def _draw_allowed(spec: TensorSpec, shape: tuple[int, ...], family: str, index: int, stream: Stream) -> torch.Tensor:
    allowed = np.array(sorted(set(spec.values)), dtype=np.float64)
    count = math.prod(shape) * (2 if spec.dtype.startswith("complex") else 1)
    match family:
        case "low":
            values = np.full(count, allowed[0])
        case "high":
            values = np.full(count, allowed[-1])
        case "zeros":
            values = np.zeros(count)
        case "sweep" | "distinct":
            values = allowed[np.arange(count) % len(allowed)]
        case _:
            values = allowed[stream.integers(0, len(allowed) - 1, count)]
    if is_floating(spec):
        return to_tensor(spec, _with_nonfinite(spec, values, shape, family=family, index=index, stream=stream), shape)
    return torch.from_numpy(values).to(torch_dtype(spec.dtype)).reshape(shape)
