"""Values in the declared order along the last axis, and whether there are enough of them."""

from __future__ import annotations

import torch

from export_gate.wall.contract import TensorSpec
from export_gate.wall.words import number_text
from export_gate.worker.controls.intervals import BITS, float_interval, integer_bounds, is_restricted, is_undeclared
from export_gate.worker.controls.specs import is_floating, is_integer, shape_at

STRICT = "strictly-increasing"
SPREAD = ("normal", "uniform", "sweep", "offset", "large")
"""Families of floats whose values differ by more than the type's last bit once all of them must differ."""


def ordered(spec: TensorSpec, tensor: torch.Tensor) -> torch.Tensor:
    """The tensor's values sorted as declared; where they must differ, equal ones are moved apart within the range."""
    if spec.order is None or tensor.numel() == 0:
        return tensor
    rising = tensor.sort(dim=-1).values
    if _starts_at_zero(spec):
        rising[..., 0] = 0
    if spec.order == "decreasing":
        return rising.flip(-1)
    return _distinct(spec, rising) if spec.order == STRICT else rising


def _starts_at_zero(spec: TensorSpec) -> bool:
    """Whole numbers that rise from 0 on are offsets, and the first of those is 0."""
    is_rising = spec.order in ("increasing", STRICT)
    return is_rising and is_integer(spec) and not spec.values and integer_bounds(spec)[0] == 0


def order_broken(spec: TensorSpec, tensor: torch.Tensor) -> str:
    """How the values break the declared order: empty, or a phrase for a message."""
    if spec.order is None or tensor.numel() == 0:
        return ""
    one, other = tensor[..., :-1], tensor[..., 1:]
    is_kept = {"increasing": one <= other, STRICT: one < other, "decreasing": one >= other}[spec.order]
    if bool(is_kept.all()):
        return ""
    place = [int(index) for index in (~is_kept).nonzero()[0]]
    before, after = (number_text(side[tuple(place)].item()) for side in (one, other))
    order = spec.order.replace("-", " ")
    return f"expected {order} values along the last axis, got {before} before {after} at {place}"


def impossible(spec: TensorSpec, sizes: dict[str, int]) -> str:
    """Why no tensor fits the declaration at these sizes; empty if one does."""
    shape, placed = shape_at(spec, sizes), spec.at(sizes)
    if 0 in shape:
        return ""
    if placed.bounds is not None and placed.bounds[0] > placed.bounds[1]:
        return f"no value is in the range [{', '.join(map(number_text, placed.bounds))}]"
    if spec.order == STRICT and shape and _count(placed, shape[-1]) < shape[-1]:
        return f"no {shape[-1]} values of its range all differ"
    return ""


def _count(spec: TensorSpec, wanted: int) -> int:
    """How many different values there are, as far as that matters."""
    if is_restricted(spec):
        return len(set(spec.values))
    if is_integer(spec):
        low, high = integer_bounds(spec)
        return high - low + 1
    if is_undeclared(spec):
        return wanted
    low, high = (int(_ordinals(torch.tensor([end], dtype=getattr(torch, spec.dtype)))[0]) for end in _ends(spec))
    return high - low + 1


def _ends(spec: TensorSpec) -> tuple[float, float]:
    interval = float_interval(spec)
    return interval.low, interval.high


def _distinct(spec: TensorSpec, rising: torch.Tensor) -> torch.Tensor:
    """Rising values with each at least one step above the one before.

    A running maximum of the values' places less their indices moves ties up, and the upper bound moves back down what
    went past it: the lesser of two strictly rising rows is strictly rising.
    """
    steps = torch.arange(rising.shape[-1])
    if is_restricted(spec):
        allowed = torch.tensor(sorted(set(spec.values)), dtype=torch.float64).to(rising.dtype)
        places, last = torch.searchsorted(allowed, rising), len(allowed) - 1
    elif is_floating(spec):
        places = _ordinals(rising)
        last = int(_ordinals(torch.tensor([_ends(spec)[1]], dtype=rising.dtype))[0])
    else:
        places, last = rising.to(torch.int64), integer_bounds(spec)[1]
    apart = torch.minimum((places - steps).cummax(dim=-1).values + steps, last - steps.flip(0))
    if is_restricted(spec):
        return allowed[apart]
    return _values(apart, rising.dtype) if is_floating(spec) else apart.to(rising.dtype)


def _ordinals(values: torch.Tensor) -> torch.Tensor:
    """The place of each float among all floats of its type, 0 for zero."""
    bits = values.view(BITS[values.dtype]).to(torch.int64)
    # Bits of negative floats count up with their magnitude from -0.0, the least integer, which has the place of 0.0.
    least = torch.iinfo(BITS[values.dtype]).min
    return torch.where(bits >= 0, bits, least - bits)


def _values(ordinals: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    bits = BITS[dtype]
    return torch.where(ordinals >= 0, ordinals, torch.iinfo(bits).min - ordinals).to(bits).view(dtype)
