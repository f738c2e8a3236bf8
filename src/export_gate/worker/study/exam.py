"""Judge a changed artifact at inputs as the gate judges the artifact itself: by its tolerances, masks and noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from export_gate.wall.equivalence import NonfinitePolicy, first_fault, worst_norm
from export_gate.wall.observation import OWN_GROUPS, CaseResult, Comparison
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.leaves.compare import compare_case
from export_gate.worker.leaves.values import Call, Leaf
from export_gate.worker.model.reference import Reference, Runner
from export_gate.worker.study.masks import Masks
from export_gate.worker.study.remembering import Remembering
from export_gate.worker.study.suspects import Inquiry, Suspect
from export_gate.worker.study.verify import Verification, compared_with


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """An input, and what the artifact itself returns there."""

    case: ControlCase
    call: Call
    own: str
    """Digest of the artifact's outputs: a mutant with the same ones is as right as the artifact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Says whether outputs would make the check red."""

    work: Verification
    laboratory: Remembering
    masks: Masks

    @classmethod
    def of(cls, work: Verification) -> Judge:
        """The judge of one target of one export."""
        known = work.laboratory
        laboratory = Remembering(
            factory=known.factory, parameters=known.parameters, names=known.names, weights=known.weights
        )
        return cls(work=work, laboratory=laboratory, masks=replace(work.masks, laboratory=laboratory))

    def is_wrong(self, case: ControlCase, reference: Reference, actual: Sequence[Leaf], run: Runner) -> bool:
        """Whether a difference from eager is left after what excuses it.

        Args:
            case: the input.
            reference: eager's outputs there.
            actual: the artifact's.
            run: runs the artifact, which is asked once more for the excuses.
        """
        result = compared_with(case, reference, actual, replace(self.work, masks=self.masks))
        faults = self._faults(result)
        if result.structure is not None or {"dtype", "shape"} & set(faults.values()):
            return True
        wrong = tuple(output for output in result.outputs if output.output in faults)
        return bool(wrong) and self._is_left(Suspect(case=case, outputs=wrong, ratio=1.0), reference, run)

    def effect(self, own: Sequence[Leaf], actual: Sequence[Leaf]) -> float:
        """How far outputs are from the artifact's own, as a share of what is allowed; infinite for what is not."""
        result = compare_case("", own, actual, self.work.context.contract.tolerance.axis)
        if result.structure is not None or self._faults(result):
            return math.inf
        norms = [worst_norm(output, self.work.tolerance(output.expected_dtype)) for output in result.outputs]
        return max((norm.measured / norm.allowed for norm in norms if norm.allowed), default=0.0)

    def _faults(self, result: CaseResult) -> dict[str, str]:
        found = {output.output: self._fault(output) for output in result.outputs}
        return {name: fault for name, fault in found.items() if fault is not None}

    def _fault(self, output: Comparison) -> str | None:
        promised = {each.name: each.nonfinite for each in self.work.context.contract.outputs}
        policy: NonfinitePolicy = promised.get(output.output, "match")
        return first_fault(output, self.work.tolerance(output.expected_dtype), policy)

    def _is_left(self, found: Suspect, reference: Reference, run: Runner) -> bool:
        inquiry = Inquiry(
            references={found.case.name: reference},
            run=run,
            tolerance=self.work.tolerance,
            masks=self.masks,
            laboratory=self.laboratory,
        )
        inquiry.inquire([found])
        if found.case.group not in OWN_GROUPS:
            return bool(inquiry.red)
        kept = {masked.kept.output: masked.kept for masked in inquiry.masked}  # noise is no excuse at own inputs
        return any(self._fault(kept.get(output.output, output)) for output in found.outputs)
