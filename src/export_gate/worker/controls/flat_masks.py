"""Masks that switch on, or off, everything at once."""

from __future__ import annotations

from typing import Any

from export_gate.wall.contract import ModelContract
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.controls.specs import tensor_leaves
from export_gate.worker.leaves.values import flatten


def flat_masks(contract: ModelContract, case: ControlCase) -> dict[str, int]:
    """Inputs of 0 and 1 with a position to mask that have one value everywhere -> that value."""
    masks = {path for path, spec in tensor_leaves(contract) if spec.is_mask and spec.shape}
    values = {leaf.name: leaf.value for leaf in flatten(case.make()) if leaf.name in masks}
    return {name: int(value.flat[0]) for name, value in values.items() if value is not None and _is_flat(value)}


def _is_flat(value: Any) -> bool:
    return bool(value.size) and bool((value == value.flat[0]).all())
