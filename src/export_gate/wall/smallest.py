"""The smallest input found at which an output still differs, or a call still raises, for the same reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallTensor:
    """One tensor of the input."""

    path: str
    """Of the contract's input: `x`, `pyramid.0`."""
    dtype: str
    shape: tuple[int, ...]
    text: str | None = None
    """The values as nested lists, if they are few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallestInput:
    """What a control input was shrunk to."""

    sizes: str = ""
    """`batch=2, seq=1`; empty without dims."""
    tensors: tuple[SmallTensor, ...]
    elements: int
    """In all tensors."""
    elements_before: int
    tried: int
    """Smaller or simpler inputs that were run."""
    is_finished: bool = True
    """It ended because nothing smaller was left to try, not because its time was over."""
    expected_at: float | None = None
    """Eager's value at the largest difference; None where there is no such number."""
    actual_at: float | None = None
    file: str = ""
    """The .npz with its values, relative to the report folder; empty if they cannot be stored there."""
