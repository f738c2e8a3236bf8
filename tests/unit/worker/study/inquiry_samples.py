"""An eager model beside another one that stands for its artifact: what an inquiry makes of their differences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

from export_gate.wall.contract import ModelContract, make_target
from export_gate.wall.tolerance import resolve_tolerance
from export_gate.worker.controls.build import build_control_set
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.leaves.compare import compare_case
from export_gate.worker.model.factory import Factory, bind, forward_parameters
from export_gate.worker.model.reference import Reference, module_runner
from export_gate.worker.study.excuses import compared
from export_gate.worker.study.laboratory import Laboratory
from export_gate.worker.study.mask_places import axes_of_outputs
from export_gate.worker.study.masks import Masks
from export_gate.worker.study.suspects import Inquiry, suspect


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquired:
    """What was found."""

    suspects: int
    """Control inputs that exceed the tolerance."""
    inquiry: Inquiry
    cases: tuple[ControlCase, ...]

    @property
    def is_red(self) -> bool:
        """Whether a difference is left without an excuse, or every further input of one size exceeds the tolerance."""
        sizes = self.inquiry.sizes(self.cases)
        return bool(self.inquiry.red) or any(found.exceeding == found.draws for found in sizes)


def inquire(
    contract: ModelContract, eager: Callable[[], torch.nn.Module], artifact: Callable[[], torch.nn.Module]
) -> Inquired:
    """Compare both at the contract's own control set, and inquire into what differs."""
    parameters = forward_parameters(eager())
    factory = Factory(make=eager, reference="m:make", kwargs={}, base=Path())
    laboratory = Laboratory(factory=factory, parameters=parameters, names={})
    cases = build_control_set(contract, Path()).cases
    run_eager, run = module_runner(eager(), {}), module_runner(artifact(), {})
    references = {c.name: Reference.held(c.name, run_eager(bind(c.make(), parameters))) for c in cases}
    axes = axes_of_outputs(contract, [(c.sizes, references[c.name]) for c in cases])
    masks = Masks(contract=contract, laboratory=laboratory, axes=axes)
    tolerance = partial(resolve_tolerance, contract, "onnx")
    found = []
    for case in cases:
        leaves = references[case.name].leaves
        shapes = {leaf.name: leaf.value.shape for leaf in leaves if leaf.value is not None}
        kept = compared(shapes, case, masks)
        result = compare_case(case.name, leaves, run(bind(case.make(), parameters)), None, kept)
        found.append(suspect(case, result.outputs, tolerance))
    suspects = [each for each in found if each is not None]
    inquiry = Inquiry(references=references, run=run, tolerance=tolerance, masks=masks, laboratory=laboratory)
    inquiry.inquire(suspects)
    return Inquired(suspects=len(suspects), inquiry=inquiry, cases=cases)


ONNX = (make_target("onnx"),)
