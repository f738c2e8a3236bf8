"""Iterate over observations: planned targets, their cases, and the comparisons that have a fault."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from export_gate.rules.base import Finding
from export_gate.rules.wording import place
from export_gate.wall.contract import GoldenSource, ModelContract, TargetName, Tolerance
from export_gate.wall.equivalence import FaultKind, NonfinitePolicy, first_fault, lacks_axis_norms, worst_norm
from export_gate.wall.observation import CaseResult, Comparison, ModelObservation, TargetObservation
from export_gate.wall.tolerance import is_inexact, resolve_golden_tolerance, resolve_tolerance


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One output leaf of one case that is not equivalent."""

    kind: FaultKind
    case: str
    comparison: Comparison
    tolerance: Tolerance
    nonfinite: NonfinitePolicy

    @property
    def excess(self) -> float:
        """Sorts faults of one kind: measured / allowed for floats, the number of elements for integers and masks."""
        if self.kind == "nonfinite":
            return self.comparison.nonfinite_mismatched
        if self.kind == "value" and not is_inexact(self.comparison.expected_dtype):
            return self.comparison.mismatched_elements
        if lacks_axis_norms(self.comparison, self.tolerance):
            return math.inf
        return worst_norm(self.comparison, self.tolerance).ratio if self.kind == "value" else math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Differing:
    """One output of one target that differs from eager's in one way."""

    model: str
    target: TargetName
    output: str
    faults: tuple[Fault, ...]
    """The worst first."""
    branch: str = ""
    """What `branch_words` says of the worst one."""

    @property
    def worst(self) -> Fault:
        """The fault that the finding reports."""
        return self.faults[0]

    def finding(self, rule: str, difference: str, hint: str) -> Finding:
        """The violation; `difference` says what differs at the worst fault."""
        return Finding(
            rule=rule,
            severity="violation",
            model=self.model,
            target=self.target,
            output=self.output,
            case=self.worst.case,
            message=f"{place(self.model, self.target, self.output, self.worst.case)}: {difference}{self.branch}",
            hint=hint,
            occurrences=len(self.faults),
            details=other_cases([fault.case for fault in self.faults]),
        )


def planned_targets(contract: ModelContract, observation: ModelObservation) -> Iterator[TargetObservation]:
    """Observations of the contract's targets, in the contract's order; separate exports follow their main one."""
    for planned in contract.targets:
        seen = [target for target in observation.targets if target.target == planned.name]
        yield from sorted(seen, key=lambda target: len(target.separate))


def differing_outputs(contract: ModelContract, observation: ModelObservation, kind: FaultKind) -> Iterator[Differing]:
    """Every target's outputs that have faults of that kind."""
    for planned in contract.targets:
        cases = [c for t in observation.targets if t.target == planned.name for c in t.cases]

        def tolerance(case: str, dtype: str, name: TargetName = planned.name) -> Tolerance:
            del case  # a target has one tolerance for all its cases
            return resolve_tolerance(contract, name, dtype)

        for output, faults in faults_by_output(contract, observation, cases, tolerance):
            same_kind = tuple(fault for fault in faults if fault.kind == kind)
            if same_kind:
                yield Differing(
                    model=contract.name,
                    target=planned.name,
                    output=output,
                    faults=same_kind,
                    branch=branch_words(observation, same_kind[0].case),
                )


def branch_words(observation: ModelObservation, case: str | None) -> str:
    """What the sizes of a control input have to do with a branch that torch.export did not follow; empty if nothing."""
    words = [branch.words for branch in observation.branches if case in branch.cases]
    return f"; the model takes the other branch where {words[0]}" if words else ""


def golden_faults(contract: ModelContract, observation: ModelObservation) -> Iterator[tuple[str, tuple[Fault, ...]]]:
    """(output, faults of any kind) of eager against the goldens, the worst first."""

    def tolerance(case: str, dtype: str) -> Tolerance:
        return resolve_golden_tolerance(contract, golden_sources(contract, case), dtype)

    return faults_by_output(contract, observation, observation.golden, tolerance)


def golden_sources(contract: ModelContract, case: str) -> tuple[GoldenSource, ...]:
    """The declared sources that the case may come from: those whose file its name `golden.<file>-<turn>` carries."""
    name = GOLDEN_CASE.match(case)
    sources = contract.controls.golden
    stems = [PurePosixPath(source.path).stem for source in sources]
    named = [s for s, stem in zip(sources, stems, strict=True) if name and _letters(stem) == _letters(name["file"])]
    return tuple(named) or sources


GOLDEN_CASE = re.compile(r"golden\.(?P<file>.+)-\d+(?:~\d+)?(?:@|$)")


def _letters(text: str) -> str:
    """Letters and digits alone: other characters are replaced in case names."""
    return "".join(filter(str.isalnum, text))


def faults_by_output(
    contract: ModelContract,
    observation: ModelObservation,
    cases: Sequence[CaseResult],
    tolerance: Callable[[str, str], Tolerance],
) -> Iterator[tuple[str, tuple[Fault, ...]]]:
    """Faults of every output that has any, the worst first; `tolerance` maps (case, dtype)."""
    found: dict[str, list[Fault]] = {}
    for case in cases:
        # If the structure differs, leaves cannot be paired; structure-mismatch reports that.
        for comparison in () if case.structure else case.outputs:
            allowed = tolerance(case.case, comparison.expected_dtype)
            policy = nonfinite_policy(contract, observation, comparison.output)
            kind = first_fault(comparison, allowed, policy)
            if kind:
                fault = Fault(kind=kind, case=case.case, comparison=comparison, tolerance=allowed, nonfinite=policy)
                found.setdefault(comparison.output, []).append(fault)
    for output, faults in found.items():
        yield output, tuple(sorted(faults, key=lambda fault: -fault.excess))


def nonfinite_policy(contract: ModelContract, observation: ModelObservation, output: str) -> NonfinitePolicy:
    """The policy declared for this output: by name, or by position if eager uses other names for its leaves."""
    declared = {promised.name: promised.nonfinite for promised in contract.outputs}
    if output in declared:
        return declared[output]
    leaves = [leaf.name for leaf in observation.outputs]
    if output in leaves and len(leaves) == len(contract.outputs):
        return contract.outputs[leaves.index(output)].nonfinite
    return "match"


def other_cases(names: Sequence[str]) -> tuple[str, ...]:
    """A detail line that lists the further cases of a finding, if there are any."""
    shown = names[1:11]
    if not shown:
        return ()
    rest = f" and {len(names) - 11} more" if len(names) > 11 else ""  # noqa: PLR2004 - ten names make a line
    return (f"also at: {', '.join(shown)}{rest}",)
