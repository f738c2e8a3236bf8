"""One fault, and how to plant it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from export_gate.wall.strength import MutationKind

Edit = Callable[[Any], None]
"""Changes an onnx.ModelProto in place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """A fault that can be planted in a copy of the file's model."""

    kind: MutationKind
    at: int
    """Place of the node that it is about; -1 for the graph's interface."""
    operator: str
    change: str
    """What it does, in words: `epsilon 1e-05 -> 1.5e-05`."""
    edit: Edit
