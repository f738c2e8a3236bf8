"""The calls at and beyond the contract's edge with eager's answers, put to every target of the main export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from export_gate.observation import CaseResult, Comparison, Probe
from export_gate.worker.controls.build import reference_sizes, values_at
from export_gate.worker.controls.generate import main_family
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.eager import Eager
from export_gate.worker.guards import LIMIT_S, Answer, eager_answers, run_probes
from export_gate.worker.model import bind
from export_gate.worker.probes import answered_by, left_out_notes, plan_probes
from export_gate.worker.reference import module_runner
from export_gate.worker.subject import Subject
from export_gate.worker.targets.base import Loaded

SHARE = 4
"""One call outside the contract may take this part of the model's timeout."""
LOOSE_ATOL, LOOSE_RTOL = 1e-4, 1e-2
"""A guard that should have refused gives other values, not inexact ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probing:
    """Eager's answers; empty for a separate export, whose sizes have no edge."""

    answers: tuple[Answer, ...] = ()
    notes: tuple[str, ...] = ()
    """Which probes were left out, and why."""
    limit_s: float = LIMIT_S
    """Bound on each call, in seconds."""

    def probe(self, loaded: Loaded, results: Mapping[str, CaseResult]) -> tuple[Probe, ...]:
        """The artifact's answers, also with its own run-time checks switched on where it has such a switch.

        Args:
            loaded: The artifact.
            results: What it said at the control inputs, by case name.
        """
        probes = run_probes(self.answers, loaded.run, is_equal, limit_s=self.limit_s, results=results)
        if loaded.run_checked is not None:
            probes += run_probes(self.answers, loaded.run_checked, is_equal, "runtime-checks", limit_s=self.limit_s)
        return probes


def ask_eager(subject: Subject, cases: Sequence[ControlCase], eager: Eager) -> Probing:
    """Plan the probes and record eager's answers; those that `cases` have the sizes of are known."""
    contract = subject.contract
    family = main_family(contract)
    planned = plan_probes(
        contract,
        reference_sizes(contract),
        lambda sizes: values_at(contract, sizes, family, 1),
        partial(bind, parameters=subject.parameters),
    )
    answerable = [case for case in cases if case.name in eager.references]
    planned = tuple(answered_by(probe, answerable) for probe in planned)
    limit_s = min(LIMIT_S, contract.timeout_s / SHARE)
    answers = eager_answers(planned, module_runner(subject.module, eager.names), limit_s, eager.references)
    return Probing(answers=answers, notes=left_out_notes(planned), limit_s=limit_s)


def is_equal(result: CaseResult) -> bool:
    """Whether an artifact's outputs are eager's, up to far more than rounding."""
    return result.structure is None and all(_is_close(output) for output in result.outputs)


def _is_close(output: Comparison) -> bool:
    is_alike = (output.expected_dtype, output.expected_shape) == (output.actual_dtype, output.actual_shape)
    is_float = output.expected_dtype.startswith(("float", "bfloat", "complex"))
    allowed = LOOSE_ATOL + LOOSE_RTOL * output.expected_max_abs if is_float else 0.0
    return is_alike and output.nonfinite_mismatched == 0 and output.max_abs_diff <= allowed
