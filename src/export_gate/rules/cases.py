"""Group the measurements that have a fault by output: one finding is about one group."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from export_gate.rules.base import Finding, Named
from export_gate.rules.blame import NOT_KNOWN, Blame
from export_gate.rules.branch_advice import branch_words, guard_advice, parting_line, single_advice
from export_gate.rules.causes import dim_of_size_one
from export_gate.rules.conversion_ways import trials_of, way_that_works
from export_gate.rules.diagnosis import diagnose
from export_gate.rules.forms import inspection_of
from export_gate.rules.measure import Excuse, Measured, Measurement
from export_gate.rules.recipe_table import Recipe
from export_gate.rules.recipes import recipe_of
from export_gate.wall.contract import TargetName
from export_gate.wall.diagnosis import Cause
from export_gate.wall.equivalence import FaultKind
from export_gate.wall.observation import Branch, ModelObservation
from export_gate.wall.source import SourceLine
from export_gate.wall.targets import LAYOUT_FAMILIES

DENSE = (
    "Pass dense tensors (`x.contiguous()`): packages may read a strided input as if it were dense. To make this a "
    "violation, set `{key}.targets.{target}.layouts` to `require`."
)
REPORT = (
    "Report the conversion to PyTorch (torch.onnx): the command below with `--save-case case.npz` writes the input."
)
REWRITTEN: tuple[Cause, ...] = ("operator", "size-arithmetic", "unknown")
"""Causes that another way to write the operator can remove."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Differing:
    """One output of one target that differs from eager's in one way."""

    model: str
    target: TargetName
    output: str
    faults: tuple[Measurement, ...]
    """The worst first."""
    blame: Blame = NOT_KNOWN
    branch: Branch | None = None
    """That the model takes at the sizes of the worst one, and that torch.export did not follow."""
    guard_hint: str = ""
    """What to do if the cause is a condition on sizes; else empty."""
    way: str = ""
    """The option with which the conversion is right, if one was tried and is; else empty."""
    recipe: Recipe | None = None
    """How to write the operator that is converted or computed wrongly."""
    parting: SourceLine | None = None
    """The condition at which eager goes another way than at inputs that agree, if sizes are the cause."""
    compared: int = 0
    """Inputs at which this output was compared."""
    is_layout: bool = False
    """Whether only inputs in another memory layout differ, which this target may misread."""

    @property
    def worst(self) -> Measurement:
        """The measurement that the finding names."""
        return self.faults[0]

    def finding(self, rule: Named, difference: str, hint: str) -> Finding:
        """The violation, or a note; `difference` says what differs at the worst fault."""
        trace = self.blame.trace
        branch = f"; {branch_words(self.branch)}" if self.branch else ""
        line = self.branch.source if self.branch else self.parting
        return rule.finding(
            self.model,
            f"{difference}{branch}",
            hint=self._hint(hint),
            recipe=self.recipe.lines if self.recipe and not self.is_layout else "",
            severity="note" if self.is_layout else "violation",
            target=self.target,
            output=self.output,
            case=self.worst.case,
            occurrences=len(self.faults),
            tried=self.compared,
            owner=self.blame.owner,
            cause=self.blame.cause,
            verdict=self.blame.verdict,
            evidence=self.blame.evidence,
            # The line with the condition, and only else the one at which values begin to differ.
            source=line or (trace.guilty.source if trace and trace.guilty else None),
            # The observation has the points; a copy in every finding would only make the results larger.
            trace=trace and replace(trace, points=()),
            smallest=self.blame.smallest,
            details=other_cases([fault.case for fault in self.faults]),
        )

    def _hint(self, hint: str) -> str:
        """The rule's hint, unless it is known better, whatever kind of difference the rule is about."""
        if self.is_layout:
            return DENSE.format(target=self.target, key=f"models.{self.model}")
        rewrite = f"{self.recipe.words}. {REPORT}" if self.recipe else ""
        return self.guard_hint or self.way or rewrite or hint


def differing_outputs(measured: Measured, kind: FaultKind) -> Iterator[Differing]:
    """Every target's outputs that have faults of that kind."""
    for planned in measured.contract.targets:
        for _, faults in faults_by_output(measured.of(planned.name)):
            same_kind = tuple(fault for fault in faults if fault.fault == kind)
            if same_kind:
                is_note = planned.options.get("layouts") == "note"
                # All faults of the output, not only those of this kind: a dense input that differs is never a note.
                is_layout = is_note and all(is_layout_case(measured.observation, fault.case) for fault in faults)
                yield _differing(measured, planned.name, same_kind, is_layout=is_layout)


def _differing(
    measured: Measured, target: TargetName, faults: tuple[Measurement, ...], *, is_layout: bool
) -> Differing:
    contract, worst = measured.contract, faults[0]
    blame = diagnose(measured, target, worst.output, faults)
    branch = branch_at(measured.observation, worst.case)
    is_guard = blame.cause == "size-guard"
    way = "" if is_guard else way_that_works(contract, target, trials_of(measured, target))
    is_rewritten = blame.cause in REWRITTEN or (blame.cause, blame.cure) == ("special-value", "no-zeros")
    is_wrong = is_rewritten and blame.owner in ("converter", "decomposition", "runtime") and not way
    return Differing(
        model=contract.name,
        target=target,
        output=worst.output,
        faults=faults,
        blame=blame,
        branch=branch,
        way=way,
        recipe=recipe_of(blame.trace.guilty) if is_wrong and blame.trace else None,
        guard_hint=_guard_hint(measured, target, faults, branch) if is_guard else "",
        parting=_parting(measured, target, worst, blame),
        compared=sum(leaf.output == worst.output for leaf in measured.of(target)),
        is_layout=is_layout,
    )


def _parting(measured: Measured, target: TargetName, worst: Measurement, blame: Blame) -> SourceLine | None:
    is_node = blame.trace is not None and blame.trace.origin == "introduced"
    if blame.cause != "size-guard" and (blame.cause != "size-arithmetic" or is_node):
        return None
    return parting_line(inspection_of(measured, target, worst.output))


def _guard_hint(measured: Measured, target: TargetName, faults: tuple[Measurement, ...], branch: Branch | None) -> str:
    single = dim_of_size_one(measured, target, faults) if branch is None else ""
    if single:
        line = parting_line(inspection_of(measured, target, faults[0].output))
        return single_advice(measured.contract, single, line)
    return guard_advice(measured.contract, branch, is_separate=bool(faults[0].export))


def is_layout_case(observation: ModelObservation, case: str) -> bool:
    """Whether a control input holds the values of another one in another memory layout."""
    return any(member.name == case and member.family in LAYOUT_FAMILIES for member in observation.control_inputs)


def branch_at(observation: ModelObservation, case: str | None) -> Branch | None:
    """The branch that the model takes at the sizes of a control input and that torch.export did not follow, if any."""
    return next((branch for branch in observation.branches if case in (*branch.cases, *branch.swept)), None)


def faults_by_output(leaves: Sequence[Measurement]) -> Iterator[tuple[str, tuple[Measurement, ...]]]:
    """Faults of every output that has any, the worst first."""
    found: dict[str, list[Measurement]] = {}
    for leaf in leaves:
        if leaf.faults:
            found.setdefault(leaf.output, []).append(leaf)
    for output, faults in found.items():
        yield output, tuple(sorted(faults, key=lambda fault: -fault.excess))


def excused_outputs(
    measured: Measured, why: Excuse, size: Callable[[Measurement], float]
) -> Iterator[tuple[TargetName, tuple[Measurement, ...]]]:
    """Every output of a target with differences that are excused for this reason, the one of the largest size first."""
    for planned in measured.contract.targets:
        excused = [leaf for leaf in measured.of(planned.name) if leaf.excused == why]
        for output in dict.fromkeys(leaf.output for leaf in excused):
            leaves = [leaf for leaf in excused if leaf.output == output]
            yield planned.name, tuple(sorted(leaves, key=lambda leaf: -size(leaf)))


def other_cases(names: Sequence[str]) -> tuple[str, ...]:
    """A detail line that lists further cases of a finding, if there are any; how many there are is said above it."""
    shown = names[1:11]
    if not shown:
        return ()
    return (f"also at: {', '.join(shown)}{', ...' if len(names) > 11 else ''}",)  # noqa: PLR2004 - ten names make a line
