"""What the study of one model hands from step to step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from export_gate.wall.contract import Job, ModelContract
from export_gate.wall.observation import HygieneObservation
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.export.program import Exported
from export_gate.worker.model.factory import Factory, Parameter
from export_gate.worker.model.reference_file import ReferenceFile
from export_gate.worker.study.allowance import Allowance
from export_gate.worker.study.eager import Eager
from export_gate.worker.study.laboratory import Laboratory
from export_gate.worker.study.probing import Probing
from export_gate.worker.study.trial import Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """What is known once eager has run; the eager instance itself is gone."""

    job: Job
    factory: Factory
    parameters: tuple[Parameter, ...]
    trial: Trial
    eager: Eager
    file: ReferenceFile
    """Takes what eager answers, one budget of memory for all of it."""
    hygiene: HygieneObservation
    weights: dict[str, str]
    """Digests of eager's parameters and buffers as the factory made them."""
    recurrent: dict[str, str]
    """Layers that torch.export unrolls -> the dim of their length, or `packed`."""
    probing: Probing
    """The calls outside the contract, with eager's answers."""
    allowance: Allowance
    """The time for experiments after a failure."""

    @property
    def contract(self) -> ModelContract:
        """The contract that all this is about."""
        return self.job.contract

    def laboratory(self) -> Laboratory:
        """One of its own, with instances that nobody else runs."""
        return Laboratory(
            factory=self.factory, parameters=self.parameters, names=self.eager.names, weights=self.weights
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One export's part of the contract."""

    separate: dict[str, int]
    """Dims that this export fixes; empty for the main export, which has all other sizes."""
    cases: tuple[ControlCase, ...]

    @property
    def folder(self) -> str:
        """`batch=1`, below the folder of the main export; empty for that one."""
        return ",".join(f"{dim}={size}" for dim, size in self.separate.items())

    @property
    def has_basis(self) -> bool:
        """Whether affine basis points are among its control inputs; they all have the same sizes."""
        return any(case.group == "affine" for case in self.cases)


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """A variant's program, and an eager model to compare it with."""

    exported: Exported
    eager: Callable[[], torch.nn.Module]
    """An instance that has not run; weights may be the program's."""
