"""The records of `export-gate.lock`: each model's interface and how closely its artifacts agreed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Union

LOCK_VERSION = 1
"""Raised whenever a reader would misread the new file."""


LockedBound = Union[float, str]  # evaluated at run time by the decoder, so no `|` on Python 3.10
"""A number, or an expression in dims such as `seq-1`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedDim:
    """The sizes that a dim may have."""

    min: int
    max: int
    multiple_of: int = 1
    separate: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedTensor:
    """An input or output."""

    name: str
    dtype: str
    shape: tuple[str, ...]
    """`batch`, `2*seq+1` or `3` for each axis; `?` if an output's size does not follow a dim."""
    range: tuple[LockedBound, LockedBound] | None = None
    """The declared range of an input's values; None if undeclared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin:
    """The comparison of one output that came closest to its bound, rounded to two digits."""

    measured: float
    allowed: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedTarget:
    """One format that the model ships in."""

    kind: str = ""
    """Empty, and not in the file, where the target is called like its kind."""
    opsets: dict[str, int] = field(default_factory=dict)
    """Operator domain -> version; empty for targets without opsets."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Bytes of each artifact, all its files together: `main`, or `batch=1` for a separate export."""
    margins: dict[str, Margin] = field(default_factory=dict)
    """Output -> margin, for outputs with an inexact dtype."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedModel:
    """What callers of one model rely on."""

    inputs: tuple[LockedTensor, ...]
    """Tensors in forward's order; constants are not part of an artifact's interface."""
    outputs: tuple[LockedTensor, ...]
    """In order; empty if eager was not observed."""
    dims: dict[str, LockedDim] = field(default_factory=dict)
    targets: dict[str, LockedTarget] = field(default_factory=dict)
    parameters: int = 0
    """Parameter elements; 0 if not observed."""
    weights_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """A whole file."""

    version: int = LOCK_VERSION
    models: dict[str, LockedModel] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LockUsed:
    """The lock that a run was compared with; the results keep it, so that judging again does not need git."""

    origin: str
    """`export-gate.lock`, or `export-gate.lock at 1a2b3c4d5e`."""
    is_base: bool = False
    """Whether it is from the base of a change, which the change cannot edit."""
    models: dict[str, LockedModel] = field(default_factory=dict)
    gone: tuple[str, ...] = ()
    """Models in the lock that are not in the config."""
    dropped: tuple[str, ...] = ()
    """The models of `gone` that are also missing from the change's own lock."""
