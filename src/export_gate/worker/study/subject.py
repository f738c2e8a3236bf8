"""The model under check, and how to call it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_map

from export_gate.wall.contract import ModelContract
from export_gate.wall.observation import HygieneObservation
from export_gate.worker.controls.build import reference_sizes, values_at
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.leaves.values import Call, Leaf
from export_gate.worker.model.factory import Factory, Parameter, bind
from export_gate.worker.model.reference import module_runner
from export_gate.worker.model.twin import twin_of

MIDPOINT_RTOL = 1e-4
"""Above the rounding of float32, below what a network of ReLUs leaves at two random inputs (4e-3 for a small UNet)."""
COARSE_MIDPOINT_RTOL = 2e-2
"""The same for float16 and bfloat16, above the rounding of bfloat16."""
COARSE = ("float16", "bfloat16")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A fresh eager instance with forward's parameters."""

    contract: ModelContract
    factory: Factory
    module: torch.nn.Module
    parameters: tuple[Parameter, ...]
    hygiene: HygieneObservation
    """What was known before anything ran."""

    def call(self, case: ControlCase) -> Call:
        """Fresh arguments of one control input."""
        return bind(case.make(), self.parameters)

    def twin(self) -> torch.nn.Module:
        """A copy that shares the weights but neither buffers nor Python state."""
        return twin_of(self.module)


def looks_affine(subject: Subject) -> bool:
    """Whether eager maps the midpoint of two inputs to the midpoint of their outputs.

    A cheap filter before the basis points are added; the claim itself rests on the exported graph.
    """
    sizes = reference_sizes(subject.contract)
    try:
        run = module_runner(subject.twin(), {})
        first, second = (values_at(subject.contract, sizes, "normal", index) for index in (0, 1))
        middle = tree_map(_midpoint, first, second)
        outputs = [run(bind(values, subject.parameters)) for values in (first, second, middle)]
    except (Exception, SystemExit):  # noqa: BLE001 - eager's failures are recorded where its references are made
        return False
    return all(_is_midpoint(*leaves) for leaves in zip(*outputs, strict=False))


def _midpoint(first: Any, second: Any) -> Any:
    is_float = isinstance(first, torch.Tensor) and first.is_floating_point()
    return (first + second) / 2 if is_float else first


def _is_midpoint(first: Leaf, second: Leaf, middle: Leaf) -> bool:
    if first.value is None or second.value is None or middle.value is None:
        return first.value is second.value is middle.value
    # Where values decide how many elements there are, the midpoint has another number of its own.
    if not first.value.shape == second.value.shape == middle.value.shape or not first.value.size:
        return False
    # To complex128 for complex outputs: float64 alone would drop the imaginary parts.
    wide = np.promote_types(first.value.dtype, np.float64)
    expected = (first.value.astype(wide) + second.value.astype(wide)) / 2
    rtol = COARSE_MIDPOINT_RTOL if first.dtype in COARSE else MIDPOINT_RTOL
    # The output may be zero everywhere.
    return bool(abs(middle.value - expected).max() <= rtol * max(abs(expected).max(), 1e-30))
