"""Find what excuses outputs that exceed their tolerance: masked places first, then the noise of eager itself.

The worst control input comes first. An output that one of them leaves red is not looked at again: its verdict is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from export_gate.wall.contract import Tolerance
from export_gate.wall.equivalence import first_fault, is_excused, is_lax, second_tolerance, worst_norm
from export_gate.wall.noise import FLAT_FAMILIES, Noise
from export_gate.wall.observation import Comparison, MaskedComparison, SizeNoise
from export_gate.wall.tolerance import is_inexact
from export_gate.worker.controls.generate import main_family, values_at
from export_gate.worker.controls.record import ControlCase
from export_gate.worker.controls.sizes import Sizes
from export_gate.worker.leaves.compare import compare_leaf
from export_gate.worker.model.factory import bind
from export_gate.worker.model.reference import Reference, Runner
from export_gate.worker.study.excuses import excuse
from export_gate.worker.study.laboratory import Laboratory, attempt
from export_gate.worker.study.masks import FIRST_PROBE, Masks
from export_gate.worker.study.noise import Pair, measured
from export_gate.worker.study.trials import Bench

FURTHER_DRAWS = 4
LAX_CASES = 6
"""Inputs looked at for outputs whose tolerance is too large to mean anything."""
Tolerances = Callable[[str], Tolerance]
"""Maps an output's dtype to its tolerance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """One control input at which values of an artifact's outputs are wrong."""

    case: ControlCase
    outputs: tuple[Comparison, ...]
    """Those with a wrong value, or with NaN or infinity in other places."""
    ratio: float
    """The largest measured / allowed of them."""


def suspect(case: ControlCase, outputs: Sequence[Comparison], tolerance: Tolerances) -> Suspect | None:
    """The outputs with wrong values; None if there are none."""
    wrong = [o for o in outputs if o.elements and _fault(o, tolerance) is not None]
    if not wrong:
        return None
    ratio = max(worst_norm(o, tolerance(o.expected_dtype)).ratio for o in wrong)
    return Suspect(case=case, outputs=tuple(wrong), ratio=ratio)


def lax(case: ControlCase, outputs: Sequence[Comparison], tolerance: Tolerances) -> Suspect | None:
    """Outputs within their tolerance, but only because it is larger than a thousandth of them."""
    wrong = []
    for output in outputs:
        own = tolerance(output.expected_dtype)
        if is_inexact(output.expected_dtype) and _fault(output, tolerance) is None and is_lax(output, own):
            wrong += [output] if first_fault(output, second_tolerance(own), "match") == "value" else []
    if not wrong or case.family in FLAT_FAMILIES:
        return None
    ratio = max(worst_norm(o, second_tolerance(tolerance(o.expected_dtype))).ratio for o in wrong)
    return Suspect(case=case, outputs=tuple(wrong), ratio=ratio)


@dataclass(slots=True, kw_only=True)
class Inquiry:
    """The excuses of one target's suspects."""

    references: Mapping[str, Reference]
    """Eager's leaves by control input."""
    run: Runner
    """Runs the artifact once more at a control input."""
    tolerance: Tolerances
    masks: Masks
    laboratory: Laboratory
    masked: list[MaskedComparison] = field(default_factory=list)
    noise: list[Noise] = field(default_factory=list)
    red: set[str] = field(default_factory=set)
    """Outputs whose verdict is known."""

    def inquire(self, suspects: Sequence[Suspect]) -> None:
        """Look at the suspects, the worst first."""
        for each in sorted(suspects, key=lambda one: -one.ratio):
            outputs = [output for output in each.outputs if output.output not in self.red]
            if outputs:
                self._inquire(each.case, outputs)

    def inquire_lax(self, suspects: Sequence[Suspect]) -> None:
        """Measure the noise at the worst inputs whose tolerance is too large to mean anything."""

        # Within the first tolerance nothing fails, so nothing would count as excused, and every draw would be made.
        def second(dtype: str) -> Tolerance:
            return second_tolerance(self.tolerance(dtype))

        for each in sorted(suspects, key=lambda one: -one.ratio)[:LAX_CASES]:
            pairs = self._pairs(each.case, each.outputs)
            self.noise += measured(pairs, each.case, second, self.laboratory)

    def sizes(self, cases: Sequence[ControlCase]) -> tuple[SizeNoise, ...]:
        """Sizes at which rounding would excuse every input while it need not at others, tried at further inputs.

        Args:
            cases: all control inputs of this target.
        """
        spread = [case for case in cases if case.group == "generated" and case.family not in FLAT_FAMILIES]
        excused = {(noise.output, noise.case) for noise in self.noise if noise.output not in self.red}
        found: list[SizeNoise] = []
        for output in dict.fromkeys(output for output, _ in excused):
            by_size: dict[tuple[tuple[str, int], ...], list[bool]] = {}
            for case in spread:
                by_size.setdefault(tuple(sorted(case.sizes.items())), []).append((output, case.name) in excused)
            if all(any(each) for each in by_size.values()):
                continue  # every size has rounding: it does not come from one of them
            found += [self._tried(output, dict(size)) for size, each in by_size.items() if all(each)]
        return tuple(found)

    def _tried(self, output: str, sizes: Sizes) -> SizeNoise:
        contract = self.masks.contract
        family = main_family(contract)
        bench = Bench(contract=contract, run=self.run, laboratory=self.laboratory, tolerance=self.tolerance)
        exceeding = 0
        for turn in range(FURTHER_DRAWS):
            found = bench.compared(partial(values_at, contract, sizes, family, FIRST_PROBE + turn), output)
            exceeding += found is not None and _fault(found, self.tolerance) is not None
        return SizeNoise(output=output, sizes=sizes, draws=FURTHER_DRAWS, exceeding=exceeding)

    def _inquire(self, case: ControlCase, outputs: Sequence[Comparison]) -> None:
        pairs = [self._without_masked(pair, case) for pair in self._pairs(case, outputs)]
        left = [pair for pair in pairs if _fault(pair.comparison, self.tolerance) is not None]
        # A NaN in another place, or an integer, is not rounding: without noise it stays red below.
        floats = [pair for pair in left if _fault(pair.comparison, self.tolerance) == "value"]
        floats = [pair for pair in floats if is_inexact(pair.comparison.expected_dtype)]
        noises = measured(floats, case, self.tolerance, self.laboratory)
        self.noise += noises
        found = {noise.output: noise for noise in noises}
        for pair in left:
            noise = found.get(pair.comparison.output)
            tolerance = self.tolerance(pair.comparison.expected_dtype)
            if noise is None or not is_excused(pair.comparison, tolerance, noise):
                self.red.add(pair.comparison.output)

    def _pairs(self, case: ControlCase, outputs: Sequence[Comparison]) -> list[Pair]:
        """The outputs with eager's leaves and those of the artifact, which is run once more; none if it raises."""
        expected = {leaf.name: leaf for leaf in self.references[case.name].leaves}
        # Once more, because the outputs of all inputs together may not fit in memory.
        again = attempt(lambda: self.run(bind(case.make(), self.laboratory.parameters)))
        actual = {leaf.name: leaf for leaf in again or ()}
        return [
            Pair(comparison=output, expected=expected[output.output], actual=actual[output.output])
            for output in outputs
            if output.output in expected and output.output in actual
        ]

    def _without_masked(self, pair: Pair, case: ControlCase) -> Pair:
        """The output with the elements that masks excuse left out of the comparison."""
        output, expected = pair.comparison, pair.expected
        found = excuse(output.output, output.expected_shape, case, self.masks)
        if found is None:
            return pair
        kept = compare_leaf(expected, pair.actual, self.tolerance(expected.dtype).axis, keep=~found.dropped)
        self.masked.append(
            MaskedComparison(
                case=case.name,
                masks=found.masks,
                reasons=found.reasons,
                dropped=int(found.dropped.sum()),
                kept=kept,
            )
        )
        return replace(pair, comparison=kept, keep=~found.dropped)


def _fault(comparison: Comparison, tolerance: Tolerances) -> str | None:
    """`value` or `nonfinite`; other faults have no excuse."""
    fault = first_fault(comparison, tolerance(comparison.expected_dtype), "match")
    return fault if fault in ("value", "nonfinite") else None
