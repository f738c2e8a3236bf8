"""Turn a contract and its observations into measurements: each output leaf of each control input is measured once.

Findings, waivers, ladders, charts, margins and kits group these measurements. None of them measures again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from export_gate.rules.wording import place
from export_gate.wall.contract import ModelContract, TargetName, Tolerance
from export_gate.wall.equivalence import (
    FaultKind,
    NonfinitePolicy,
    Norm,
    faults,
    is_excused,
    lacks_axis_norms,
    worst_noise,
    worst_norm,
)
from export_gate.wall.noise import Noise
from export_gate.wall.observation import (
    OWN_GROUPS,
    CaseResult,
    Comparison,
    Failure,
    MaskedComparison,
    ModelObservation,
    RunObservation,
    Structure,
    TargetObservation,
)
from export_gate.wall.tolerance import is_inexact, resolve_golden_tolerance, resolve_tolerance

Excuse = Literal["masked", "noise"]
"""Why a difference is not a fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One output leaf of one control input: an artifact against eager, or eager against a golden."""

    case: str
    comparison: Comparison
    tolerance: Tolerance
    nonfinite: NonfinitePolicy
    norm: Norm | None
    """The inequality closest to its bound; None if dtype or shape differ, so that there are no numbers."""
    faults: tuple[FaultKind, ...]
    """Why the leaves are not equivalent, the decisive fault first; empty if they are."""
    lacks_axis: bool = False
    """Norms along the tolerance axis would decide but were not observed; `norm` is that of the whole leaf."""
    excused: Excuse | None = None
    """Why the difference is not a fault: masked places, or rounding of float32."""
    masked: MaskedComparison | None = None
    """What masks leave out; `comparison` is then about the rest."""
    noise: Noise | None = None
    """The noise of eager itself, measured where the tolerance is exceeded."""
    target: TargetName | None = None
    """None is eager against a golden."""
    export: str = ""
    """Sizes of the separate export; empty for the main one."""

    @property
    def output(self) -> str:
        """The leaf's name."""
        return self.comparison.output

    @property
    def fault(self) -> FaultKind | None:
        """The decisive fault."""
        return self.faults[0] if self.faults else None

    @property
    def is_exact(self) -> bool:
        """Whether no entry may differ at all."""
        return not is_inexact(self.comparison.expected_dtype)

    @property
    def broken(self) -> Norm | None:
        """The inequality that a value fault broke; None for exact dtypes and for other faults."""
        return None if self.fault != "value" or self.is_exact or self.lacks_axis else self.norm

    @property
    def excess(self) -> float:
        """Sorts faults of one kind: measured / allowed for floats, the number of elements for integers and masks."""
        if self.fault == "nonfinite":
            return self.comparison.nonfinite_mismatched
        if self.fault == "value" and self.is_exact:
            return self.comparison.mismatched_elements
        return self.broken.ratio if self.broken else math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A call that raised, or what ended a target or the whole model."""

    failure: Failure
    target: TargetName | None = None
    """None if the model ended before its targets."""
    export: str = ""
    is_end: bool = False
    """Whether nothing after it was compared, so that no waiver accepts it."""

    @property
    def case(self) -> str | None:
        """The control input; None if it did not happen at one."""
        return self.failure.case

    @property
    def where(self) -> str | None:
        """Words for the separate export that it happened in."""
        return f"separate export at {self.export}" if self.export else None

    def place(self, model: str) -> str:
        """Where, as the beginning of a message."""
        return place(model, self.target, case=self.case, at=self.where)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpaired:
    """A control input at which an artifact returned other leaves than eager, so that they cannot be paired."""

    case: str
    structure: Structure
    target: TargetName
    export: str = ""


Item = Measurement | Failed | Unpaired | CaseResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One model: what it promises, what was observed and what was measured from both."""

    contract: ModelContract
    observation: ModelObservation
    leaves: tuple[Measurement, ...] = ()
    """Planned targets in the contract's order, separate exports after their main one."""
    goldens: tuple[Measurement, ...] = ()
    failed: tuple[Failed, ...] = ()
    """What ended the model, then what ended targets, then single calls."""
    unpaired: tuple[Unpaired, ...] = ()
    odd_goldens: tuple[CaseResult, ...] = ()
    """Goldens that could not be compared leaf by leaf."""

    def of(self, target: TargetName) -> tuple[Measurement, ...]:
        """The leaves of one target."""
        return tuple(leaf for leaf in self.leaves if leaf.target == target)

    def seen(self, target: TargetName) -> tuple[TargetObservation, ...]:
        """Observations of one target, separate exports after the main one."""
        found = [seen for seen in self.observation.targets if seen.target == target]
        return tuple(sorted(found, key=lambda seen: len(seen.separate)))

    def only(self, wanted: Callable[[Item], bool]) -> Measured:
        """The same model with the wanted measurements alone."""
        return replace(
            self,
            leaves=tuple(filter(wanted, self.leaves)),
            goldens=tuple(filter(wanted, self.goldens)),
            failed=tuple(filter(wanted, self.failed)),
            unpaired=tuple(filter(wanted, self.unpaired)),
            odd_goldens=tuple(filter(wanted, self.odd_goldens)),
        )


def measure_run(contracts: Sequence[ModelContract], run: RunObservation) -> tuple[Measured, ...]:
    """Every observation of a planned model, in the contracts' order."""
    observed: dict[str, list[ModelObservation]] = {}
    for seen in run.models:
        observed.setdefault(seen.model, []).append(seen)
    return tuple(measure(contract, seen) for contract in contracts for seen in observed.get(contract.name, ()))


def measure(contract: ModelContract, observation: ModelObservation) -> Measured:
    """Everything that is judged of one model."""
    # Only for its `seen`, which puts separate exports after the main one.
    bare = Measured(contract=contract, observation=observation)
    seen = [target for planned in contract.targets for target in bare.seen(planned.name)]
    # What ended something comes before single calls: rules name the first failure of a group.
    ended = [(target, target.failure) for target in seen if target.failure]
    own = [Failed(failure=observation.failure, is_end=True)] if observation.failure else []
    own += [Failed(failure=why, target=t.target, export=t.export, is_end=True) for t, why in ended]
    calls = [(target, case) for target in seen for case in target.cases]
    single = [
        Failed(failure=replace(case.failure, case=case.case), target=target.target, export=target.export)
        for target, case in calls
        if case.failure
    ]
    return replace(
        bare,
        leaves=tuple(leaf for target, case in calls for leaf in _leaves(contract, observation, target, case)),
        goldens=tuple(_goldens(contract, observation)),
        failed=(*own, *single),
        unpaired=tuple(
            Unpaired(case=case.case, structure=case.structure, target=target.target, export=target.export)
            for target, case in calls
            if case.structure
        ),
        odd_goldens=tuple(case for case in observation.golden if case.failure or case.structure),
    )


def measure_leaf(
    case: str, comparison: Comparison, tolerance: Tolerance, nonfinite: NonfinitePolicy = "match"
) -> Measurement:
    """One leaf under what is allowed there."""
    found = faults(comparison, tolerance, nonfinite)
    has_numbers = not {"dtype", "shape"} & set(found)
    return Measurement(
        case=case,
        comparison=comparison,
        tolerance=tolerance,
        nonfinite=nonfinite,
        norm=worst_norm(comparison, tolerance) if has_numbers else None,
        faults=found,
        lacks_axis=lacks_axis_norms(comparison, tolerance),
    )


def _leaves(
    contract: ModelContract, observation: ModelObservation, target: TargetObservation, case: CaseResult
) -> Iterator[Measurement]:
    masked = {found.kept.output: found for found in target.masked if found.case == case.case}
    noise = {found.output: found for found in target.noise if found.case == case.case}
    for comparison in _pairs(case):
        tolerance = resolve_tolerance(contract, target.target, comparison.expected_dtype)
        policy = nonfinite_policy(contract, observation, comparison.output)
        leaf = measure_leaf(case.case, comparison, tolerance, policy)
        # Masks before noise: noise is measured on the elements that masks keep.
        if leaf.fault in ("value", "nonfinite"):
            leaf = _without_masked(leaf, masked.get(comparison.output))
        if leaf.fault == "value" and not _is_arithmetic(observation, target, leaf):
            leaf = _within_noise(leaf, noise.get(comparison.output), is_own=_is_own(observation, case))
        yield replace(leaf, target=target.target, export=target.export)


def _is_own(observation: ModelObservation, case: CaseResult) -> bool:
    """Whether the input is the project's own."""
    return any(member.name == case.case and member.group in OWN_GROUPS for member in observation.control_inputs)


def _is_arithmetic(observation: ModelObservation, target: TargetObservation, leaf: Measurement) -> bool:
    """Whether every input of this size exceeds the tolerance while other sizes do not: no rounding does that."""
    sizes = next((member.sizes for member in observation.control_inputs if member.name == leaf.case), None)
    return any(
        found.output == leaf.output and found.sizes == sizes and found.exceeding == found.draws > 0
        for found in target.size_noise
    )


def _without_masked(leaf: Measurement, masked: MaskedComparison | None) -> Measurement:
    """The leaf judged by the elements that masks keep, if masks excuse any."""
    if masked is None:
        return leaf
    kept = measure_leaf(leaf.case, masked.kept, leaf.tolerance, leaf.nonfinite)
    return replace(kept, masked=masked, excused=None if kept.faults else "masked")


def _within_noise(leaf: Measurement, noise: Noise | None, *, is_own: bool) -> Measurement:
    """The leaf with eager's noise, which excuses generated inputs and only explains the project's own."""
    if noise is None or leaf.is_exact or not is_excused(leaf.comparison, leaf.tolerance, noise):
        return leaf
    if is_own or leaf.norm is None:
        return replace(leaf, noise=noise)
    return replace(
        leaf, noise=noise, excused="noise", faults=(), norm=worst_noise(leaf.comparison, leaf.tolerance, noise)
    )


def _goldens(contract: ModelContract, observation: ModelObservation) -> Iterator[Measurement]:
    """Eager against each golden, under the tolerance of the source that the golden is from."""
    numbers = {member.name: member.golden for member in observation.control_inputs}
    sources = contract.controls.golden
    for case in observation.golden:
        number = numbers.get(case.case)
        # Results of an older version do not say which source it was: then the strictest one holds.
        own = sources if number is None else sources[number : number + 1] or sources
        for comparison in _pairs(case):
            tolerance = resolve_golden_tolerance(contract, own, comparison.expected_dtype)
            yield measure_leaf(
                case.case, comparison, tolerance, nonfinite_policy(contract, observation, comparison.output)
            )


def _pairs(case: CaseResult) -> tuple[Comparison, ...]:
    """The leaves in pairs; none if the structures differ, which has its own rule."""
    return () if case.structure else case.outputs


def nonfinite_policy(contract: ModelContract, observation: ModelObservation, output: str) -> NonfinitePolicy:
    """The policy declared for this output: by name, or by position if eager uses other names for its leaves."""
    declared = {promised.name: promised.nonfinite for promised in contract.outputs}
    if output in declared:
        return declared[output]
    leaves = [leaf.name for leaf in observation.outputs]
    if output in leaves and len(leaves) == len(contract.outputs):
        return contract.outputs[leaves.index(output)].nonfinite
    return "match"
