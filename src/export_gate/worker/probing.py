"""The calls outside the contract, with eager's answers, kept for every target."""

from __future__ import annotations

from dataclasses import dataclass

from export_gate.observation import Probe
from export_gate.worker.eager import Eager
from export_gate.worker.reference import Runner
from export_gate.worker.subject import Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Probing:
    """x"""

    def probes(self, run: Runner) -> tuple[Probe, ...]:
        return ()


def ask_eager(subject: Subject, eager: Eager) -> Probing:
    return Probing()
