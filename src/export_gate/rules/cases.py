"""Group the measurements that have a fault by output: one finding is about one group."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from export_gate.rules.base import Finding
from export_gate.rules.blame import NOT_KNOWN, Blame
from export_gate.rules.diagnosis import diagnose
from export_gate.rules.measure import Excuse, Measured, Measurement
from export_gate.rules.wording import place
from export_gate.wall.contract import TargetName
from export_gate.wall.equivalence import FaultKind
from export_gate.wall.observation import Branch, ModelObservation
from export_gate.wall.targets import LAYOUT_FAMILIES

DENSE = (
    "Pass dense tensors (`x.contiguous()`): packages may read a strided input as if it were dense. To make this a "
    "violation, set `{key}.targets.{target}.layouts` to `require`."
)


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
    is_layout: bool = False
    """Whether only inputs in another memory layout differ, which this target may misread."""

    @property
    def worst(self) -> Measurement:
        """The measurement that the finding names."""
        return self.faults[0]

    def finding(self, rule: str, difference: str, hint: str) -> Finding:
        """The violation, or a note; `difference` says what differs at the worst fault."""
        trace = self.blame.trace
        branch = f"; the model takes the other branch where `{self.branch.words}`" if self.branch else ""
        line = self.branch.source if self.branch else None
        return Finding(
            rule=rule,
            severity="note" if self.is_layout else "violation",
            model=self.model,
            target=self.target,
            output=self.output,
            case=self.worst.case,
            message=f"{place(self.model, self.target, self.output, self.worst.case)}: {difference}{branch}",
            hint=DENSE.format(target=self.target, key=f"models.{self.model}") if self.is_layout else hint,
            occurrences=len(self.faults),
            owner=self.blame.owner,
            cause=self.blame.cause,
            evidence=self.blame.evidence,
            source=trace.guilty.source if trace and trace.guilty else line,
            # The observation has the points; a copy in every finding would only make the results larger.
            trace=trace and replace(trace, points=()),
            smallest=self.blame.smallest,
            details=other_cases([fault.case for fault in self.faults]),
        )


def differing_outputs(measured: Measured, kind: FaultKind) -> Iterator[Differing]:
    """Every target's outputs that have faults of that kind."""
    for planned in measured.contract.targets:
        for output, faults in faults_by_output(measured.of(planned.name)):
            same_kind = tuple(fault for fault in faults if fault.fault == kind)
            if same_kind:
                yield Differing(
                    model=measured.contract.name,
                    target=planned.name,
                    output=output,
                    faults=same_kind,
                    blame=diagnose(measured, planned.name, output, same_kind),
                    branch=branch_at(measured.observation, same_kind[0].case),
                    is_layout=planned.options.get("layouts") == "note"
                    # All faults of the output, not only those of this kind: a dense input that differs is never a note.
                    and all(is_layout_case(measured.observation, fault.case) for fault in faults),
                )


def is_layout_case(observation: ModelObservation, case: str) -> bool:
    """Whether a control input holds the values of another one in another memory layout."""
    inputs = observation.controls.inputs if observation.controls else ()
    return any(member.name == case and member.family in LAYOUT_FAMILIES for member in inputs)


def branch_at(observation: ModelObservation, case: str | None) -> Branch | None:
    """The branch that the model takes at the sizes of a control input and that torch.export did not follow, if any."""
    return next((branch for branch in observation.branches if case in branch.cases), None)


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
    """A detail line that lists the further cases of a finding, if there are any."""
    shown = names[1:11]
    if not shown:
        return ()
    rest = f" and {len(names) - 11} more" if len(names) > 11 else ""  # noqa: PLR2004 - ten names make a line
    return (f"also at: {', '.join(shown)}{rest}",)
