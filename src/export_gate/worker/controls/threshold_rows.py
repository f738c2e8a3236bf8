"""Control inputs at the constants of a program: each row at one of them, or one step of the element type beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
import torch

from export_gate.wall.contract import ModelContract, TensorSpec
from export_gate.worker.controls.draws import base_family, draw
from export_gate.worker.controls.intervals import is_restricted, torch_dtype, value_bounds
from export_gate.worker.controls.record import ControlCase, case_name, generated_case
from export_gate.worker.controls.sizes import Sizes, plan_sizes
from export_gate.worker.controls.specs import build_values, is_integer, shape_at, tensor_leaves
from export_gate.worker.controls.stream import Floats, Stream
from export_gate.worker.leaves.values import Values
from export_gate.worker.model.thresholds import Threshold

FAMILY = "threshold-rows"
REALS = ("float64", "float32", "float16", "bfloat16")
EXACT = 1 << 53
"""Up to here, float64 holds every whole number."""


def threshold_cases(contract: ModelContract, constants: Sequence[Threshold]) -> tuple[ControlCase, ...]:
    """Draws at the middle and the largest sizes; none if no input can take any of the constants."""
    plan = plan_sizes(contract)
    if not any(_fitting(spec.at(plan.middle), constants) for _, spec in tensor_leaves(contract)):
        return ()
    # Two draws at the largest, where most rows are: constants take turns over the rows from a random first.
    places = enumerate((plan.middle, plan.largest, plan.largest), 1)
    return tuple(threshold_case(contract, constants, index, sizes) for index, sizes in places)


def threshold_case(contract: ModelContract, constants: Sequence[Threshold], index: int, sizes: Sizes) -> ControlCase:
    """One draw."""
    return generated_case(FAMILY, index, sizes, partial(_values, contract, sizes, tuple(constants), index))


def _values(contract: ModelContract, sizes: Sizes, constants: Sequence[Threshold], index: int) -> Values:
    name = case_name(f"{FAMILY}-{index}", sizes)

    def leaf(path: str, spec: TensorSpec) -> torch.Tensor:
        stream, placed = Stream(contract.controls.seed, name, path), spec.at(sizes)
        shape, fitting = shape_at(spec, sizes), _fitting(placed, constants)
        if not fitting or not math.prod(shape):
            return draw(placed, shape, base_family(placed), index, stream)
        row = shape[-1] if shape else 1
        rows = _rows(placed, fitting, math.prod(shape) // row, row, stream)
        return _stepped(placed, rows.reshape(-1), stream).reshape(shape)

    return build_values(contract, leaf)


def _bounds(spec: TensorSpec) -> tuple[float, float] | None:
    """What the input may hold; None if it has no order of values to step through."""
    if spec.is_mask or is_restricted(spec) or spec.order is not None:
        return None
    return value_bounds(spec) if is_integer(spec) or spec.dtype in REALS else None


def _fitting(spec: TensorSpec, constants: Sequence[Threshold]) -> list[Threshold]:
    bounds = _bounds(spec)
    if bounds is None:
        return []
    low, high = bounds
    finite = [each for each in constants if math.isfinite(each.value)]
    return [each for each in finite if _fits(each, low, high)]


def _fits(each: Threshold, low: float, high: float) -> bool:
    return 0 < abs(each.value) <= high - low if each.is_step else low <= each.value <= high


def _rows(spec: TensorSpec, constants: Sequence[Threshold], count: int, row: int, stream: Stream) -> Floats:
    """Each row at one constant, or at random multiples of it."""
    low, high = _bounds(spec) or (0.0, 0.0)
    first = int(stream.integers(0, len(constants) - 1, 1)[0])
    found: list[Floats] = []
    for turn in range(count):
        each = constants[(first + turn) % len(constants)]
        if not each.is_step:
            found.append(np.full(row, each.value))
            continue
        step = abs(each.value)
        least, most = _multiples(low - each.offset, high - each.offset, step)
        multiples = stream.integers(least, most, row) if least <= most else np.zeros(row, dtype=np.int64)
        found.append(multiples.astype(np.float64) * step + each.offset)
    return np.stack(found)


def _multiples(low: float, high: float, step: float) -> tuple[int, int]:
    """The least and the greatest multiple within the bounds."""
    # Beyond 2^53 multiples are not exact, and those of a tiny step do not fit into int64.
    return math.ceil(max(low / step, -EXACT)), math.floor(min(high / step, EXACT))


def _float_bounds(low: float, high: float) -> tuple[float, float]:
    """The outermost floats within integer bounds."""
    # As a float, the largest int64 is 2^63, which wraps around to the smallest one once it is an integer again.
    return (
        float(low) if float(low) >= low else math.nextafter(low, math.inf),
        float(high) if float(high) <= high else math.nextafter(high, -math.inf),
    )


def _stepped(spec: TensorSpec, values: Floats, stream: Stream) -> torch.Tensor:
    """The values in the element type, a quarter of them one step lower and a quarter one step higher."""
    low, high = _bounds(spec) or (0.0, 0.0)
    steps = stream.integers(0, 3, len(values))
    if is_integer(spec):
        moved = np.round(values) + np.select([steps == 0, steps == 1], [-1, 1], 0)
        return torch.from_numpy(np.clip(moved, *_float_bounds(low, high))).to(torch_dtype(spec.dtype))
    exact = torch.from_numpy(values).to(torch_dtype(spec.dtype))
    lower, higher = (torch.nextafter(exact, torch.full_like(exact, end)) for end in (-math.inf, math.inf))
    side = torch.from_numpy(steps)
    return torch.where(side == 0, lower, torch.where(side == 1, higher, exact)).clamp(low, high)
