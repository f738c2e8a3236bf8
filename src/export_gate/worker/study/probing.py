"""Probe every target of the main export with calls at and beyond the contract's edge, and eager's answers to them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from export_gate.wall.observation import CaseResult, Comparison, Probe
from export_gate.worker.controls.build import reference_sizes, values_at
from export_gate.worker.controls.generate import main_family
from export_gate.worker.controls.made import has_makers
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.leaves.compare import compare_case
from export_gate.worker.leaves.values import Leaf
from export_gate.worker.model.factory import bind
from export_gate.worker.model.reference import Runner, module_runner, rename, without_ignored
from export_gate.worker.model.reference_file import ReferenceFile
from export_gate.worker.study.eager import Eager
from export_gate.worker.study.guards import LIMIT_S, Answer, eager_asked, probes_begun, run_probes
from export_gate.worker.study.laboratory import attempt
from export_gate.worker.study.masks import Masks, unmasked
from export_gate.worker.study.probes import PlannedProbe, answered_by, left_out_notes, plan_probes
from export_gate.worker.study.subject import Subject
from export_gate.worker.targets.base import Loaded

SHARE = 4
"""One call outside the contract may take this part of the model's timeout."""
LOOSE_ATOL, LOOSE_RTOL = 1e-4, 1e-2
"""Tolerance for probes: a missing guard gives wrong values, not inexact ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probing:
    """Eager's answers; empty for a separate export, whose sizes do not have an edge."""

    answers: tuple[Answer, ...] = ()
    notes: tuple[str, ...] = ()
    """Which probes were left out, and why."""
    limit_s: float = LIMIT_S
    """Bound on each call, in seconds."""

    @contextmanager
    def begun(
        self, loaded: Loaded, known: Collection[str], masks: Masks
    ) -> Iterator[Callable[[Mapping[str, CaseResult]], tuple[Probe, ...]]]:
        """Begin to probe the artifact while its control inputs run; yields what takes their results and returns probes.

        An artifact that has run-time checks of its own is then asked again, with those switched on.

        Args:
            loaded: The artifact, which has not run yet.
            known: Names of the control inputs that it will run on.
            masks: What is known of the model's masks.
        """
        limit_s = self.limit_s
        plain = partial(_unmasked, loaded.run, masks)
        with probes_begun(self.answers, loaded.run, is_equal, limit_s=limit_s, known=known, unmasked=plain) as answered:

            def probes(results: Mapping[str, CaseResult]) -> tuple[Probe, ...]:
                found = answered(results)
                if loaded.run_checked is not None:
                    plain_checked = partial(_unmasked, loaded.run_checked, masks)
                    found += run_probes(
                        self.answers,
                        loaded.run_checked,
                        is_equal,
                        "runtime-checks",
                        limit_s=limit_s,
                        unmasked=plain_checked,
                    )
                return found

            yield probes


@contextmanager
def eager_begun(
    subject: Subject, cases: Sequence[ControlCase], file: ReferenceFile
) -> Iterator[Callable[[Eager], Probing]]:
    """Plan the probes and begin to ask eager; yields what waits for the answers, given what eager said at `cases`."""
    contract = subject.contract
    # The first draw of this family, as the first control input of each size: its result may stand for a probe's.
    family = main_family(contract)
    planned = plan_probes(
        contract,
        reference_sizes(contract),
        lambda sizes: values_at(contract, sizes, family, 1),
        partial(bind, parameters=subject.parameters),
    )
    if not contract.controls.generated and not has_makers(contract):
        planned = ()  # nobody can draw an input of another size
    planned = tuple(answered_by(probe, cases) for probe in planned)
    limit_s = min(LIMIT_S, contract.timeout_s / SHARE)
    with eager_asked(planned, module_runner(subject.module, {}), file, limit_s) as asked:

        def probing(eager: Eager) -> Probing:

            def compared(leaves: tuple[Leaf, ...]) -> tuple[Leaf, ...]:
                return without_ignored(rename(leaves, eager.names), contract.outputs)

            answers = tuple(
                replace(answer, reference=answer.reference.changed(compared)) for answer in asked(eager.references)
            )
            return Probing(answers=answers, notes=left_out_notes(planned), limit_s=limit_s)

        yield probing


def _unmasked(run: Runner, masks: Masks, probe: PlannedProbe) -> CaseResult | None:
    values = unmasked(probe.values(), masks)
    if values is None:
        return None
    eager = attempt(lambda: masks.laboratory.again(values))
    actual = attempt(lambda: run(bind(values, masks.laboratory.parameters)))
    if eager is None or actual is None:
        return None
    return compare_case(probe.axis, without_ignored(eager, masks.contract.outputs), actual)


def is_equal(result: CaseResult) -> bool:
    """Whether an artifact's outputs equal eager's, with a tolerance far above rounding."""
    return result.structure is None and all(_is_close(output) for output in result.outputs)


def _is_close(output: Comparison) -> bool:
    is_alike = (output.expected_dtype, output.expected_shape) == (output.actual_dtype, output.actual_shape)
    is_float = output.expected_dtype.startswith(("float", "bfloat", "complex"))
    allowed = LOOSE_ATOL + LOOSE_RTOL * output.expected_max_abs if is_float else 0.0
    return is_alike and output.nonfinite_mismatched == 0 and output.max_abs_diff <= allowed
