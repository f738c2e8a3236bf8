"""Element types: the interval a tensor's values may fill, and rounding into a type without leaving it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from export_gate.wall.contract import TensorSpec
from export_gate.wall.words import number_text
from export_gate.worker.controls.specs import is_integer

INFINITE_BOUND = 1e4
"""How far values go towards a bound declared infinite."""

_COMPONENT = {"complex64": torch.float32, "complex128": torch.float64}
BITS = {
    torch.float64: torch.int64,
    torch.float32: torch.int32,
    torch.float16: torch.int16,
    torch.bfloat16: torch.int16,
}
"""The integer type that holds the bits of a float of each type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Inclusive bounds; each is a value of the element type."""

    low: float
    high: float

    @property
    def width(self) -> float:
        """Distance of the bounds."""
        return self.high - self.low

    @property
    def magnitude(self) -> float:
        """The largest absolute value inside."""
        return max(abs(self.low), abs(self.high))

    def clamp(self, value: float) -> float:
        """The nearest value inside."""
        return min(max(value, self.low), self.high)


def torch_dtype(name: str) -> torch.dtype:
    """`float32` to `torch.float32`."""
    dtype: torch.dtype = getattr(torch, name)
    return dtype


def component_dtype(spec: TensorSpec) -> torch.dtype:
    """The real element type: of the pair for a complex tensor."""
    return _COMPONENT.get(spec.dtype, torch_dtype(spec.dtype))


def is_undeclared(spec: TensorSpec) -> bool:
    """Whether there is neither `range` nor `values`, so that only mild values may be tried."""
    return spec.range is None and not spec.values and not spec.positions and spec.make is None and spec.dtype != "bool"


def is_restricted(spec: TensorSpec) -> bool:
    """Whether `values` leaves less than the element type has."""
    return bool(spec.values or spec.positions) and not (spec.dtype == "bool" and len(set(spec.values)) > 1)


def float_interval(spec: TensorSpec) -> Interval:
    """The declared range, tightened to values of the element type; +-6 (six standard deviations) if undeclared."""
    dtype = component_dtype(spec)
    finite = torch.finfo(dtype)
    low, high = spec.bounds or (-6.0, 6.0)
    low = -INFINITE_BOUND if math.isinf(low) else low
    high = INFINITE_BOUND if math.isinf(high) else high
    inner = Interval(low=_inside(max(low, finite.min), dtype, 1), high=_inside(min(high, finite.max), dtype, -1))
    if inner.low > inner.high:  # no value of the type inside: the nearest one is meant
        nearest = float(torch.tensor(low, dtype=torch.float64).to(dtype))
        return Interval(low=nearest, high=nearest)
    return inner


def integer_bounds(spec: TensorSpec) -> tuple[int, int]:
    """The declared range as integers of the element type; 0 and 1 if undeclared."""
    limits = torch.iinfo(torch_dtype(spec.dtype))
    low, high = spec.bounds or (0, 1)
    least = limits.min if math.isinf(low) else max(math.ceil(low), limits.min)
    most = limits.max if math.isinf(high) else min(math.floor(high), limits.max)
    # Where no integer is inside, the one above is meant.
    return least, max(least, most)


def value_bounds(spec: TensorSpec) -> tuple[float, float]:
    """The least and the greatest value of either kind; of integers they are ints, since int64 has more than floats."""
    if is_integer(spec):
        return integer_bounds(spec)
    interval = float_interval(spec)
    return interval.low, interval.high


def admits(spec: TensorSpec, tensor: torch.Tensor) -> str:
    """How the tensor's values break the contract: empty, or a phrase for a message.

    Range bounds are widened to the nearest value of the element type, so that float32(0.1) is inside [0, 0.1].
    """
    values = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    if tensor.is_floating_point() or tensor.is_complex():
        if "nan" not in spec.nonfinite and bool(values.isnan().any()):
            return "expected no NaN (`nonfinite` does not admit it)"
        if "inf" not in spec.nonfinite and bool(values.isinf().any()):
            return "expected no infinity (`nonfinite` does not admit it)"
        values = values[values.isfinite()]
    if values.numel() == 0 or spec.dtype == "bool":
        return ""
    if spec.positions:
        columns = zip(spec.positions, tensor.unbind(-1), strict=True)
        found = [_outside_values(allowed, column) for allowed, column in columns]
        return next((f"{said} at position {place}" for place, said in enumerate(found) if said), "")
    return _outside_values(spec.values, values) if spec.values else _outside_range(spec, values)


def to_tensor(spec: TensorSpec, values: npt.NDArray[np.float64], shape: tuple[int, ...]) -> torch.Tensor:
    """float64 values (pairs for complex types) rounded to the element type.

    Values inside the interval stay inside: its bounds are values of the type and rounding is monotone.
    """
    rounded = torch.from_numpy(values).to(component_dtype(spec))
    if spec.dtype in _COMPONENT:
        # A copy: torch.export takes no view of reals ("Tensor must have a last dimension of size 2", torch 2.13).
        return torch.view_as_complex(rounded.reshape(*shape, 2)).clone()
    return rounded.reshape(shape)


def _inside(bound: float, dtype: torch.dtype, direction: int) -> float:
    """The bound rounded to the element type towards `direction`, never to the other side."""
    rounded = torch.tensor(bound, dtype=torch.float64).to(dtype)
    value = float(rounded)
    if (value - bound) * direction >= 0:
        return value
    if value == 0:  # the bound underflowed: the type's smallest value is beyond it
        # As bits, 1 is the smallest positive value.
        return direction * float(torch.tensor(1, dtype=BITS[dtype]).view(dtype))
    # Bits of floats of one sign are in the order of their magnitudes.
    away_from_zero = (value > 0) == (direction > 0)
    return float((rounded.view(BITS[dtype]) + (1 if away_from_zero else -1)).view(dtype))


def _outside_values(allowed: tuple[float, ...], values: torch.Tensor) -> str:
    odd = values[~torch.isin(values, torch.tensor(allowed, dtype=torch.float64).to(values.dtype))]
    return (
        f"expected one of {', '.join(map(number_text, allowed))}, got {number_text(odd[0].item())}"
        if odd.numel()
        else ""
    )


def _outside_range(spec: TensorSpec, values: torch.Tensor) -> str:
    if spec.bounds is None:
        return ""
    low, high = spec.bounds
    least, most = values.min().item(), values.max().item()
    # Python's integers stay: int64 has bounds that no float holds.
    nearest = [bound if is_integer(spec) else float(torch.tensor(bound).to(values.dtype)) for bound in spec.bounds]
    if least >= min(low, nearest[0]) and most <= max(high, nearest[1]):
        return ""
    low_text, high_text, least_text, most_text = map(number_text, (low, high, least, most))
    return f"expected values in [{low_text}, {high_text}], got {least_text} to {most_text}"
