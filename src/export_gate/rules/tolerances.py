"""Tolerances that cannot fail: outputs so small that the allowed error exceeds a thousandth of them."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from export_gate.rules.base import Finding, Named
from export_gate.rules.cases import other_cases
from export_gate.rules.measure import Measured, Measurement
from export_gate.rules.weights import weights_of
from export_gate.wall.contract import TargetName
from export_gate.wall.equivalence import is_excused, is_lax, second_tolerance, whole_norm
from export_gate.wall.noise import FLAT_FAMILIES, MOST_TELLING, TELLING, telling_bound, telling_share


@dataclass(frozen=True, slots=True, kw_only=True)
class Lax:
    """One output of one target that is judged a second time, at a thousandth of its own size."""

    target: TargetName
    output: str
    scale: float
    """The median of max|M| over inputs with spread."""
    leaves: tuple[Measurement, ...]
    """Those whose tolerance is lax, the largest difference first."""
    failing: tuple[Measurement, ...]
    """Those that pass only because their tolerance cannot fail."""

    def finding(self, model: str, rule: Named, words: str, hint: str) -> Finding:
        """What is said of the output, at the worst input."""
        leaves = self.failing or self.leaves
        worst = leaves[0]
        return rule.finding(
            model,
            words,
            hint,
            target=self.target,
            output=self.output,
            case=worst.case,
            measured=worst.norm.measured if worst.norm else None,
            allowed=TELLING * self.scale,
            occurrences=len(leaves),
            details=other_cases([leaf.case for leaf in leaves]),
        )


def lax_outputs(measured: Measured) -> Iterator[Lax]:
    """Outputs whose tolerance exceeds a thousandth of them at more than half of the inputs with spread."""
    for planned in measured.contract.targets:
        leaves = [leaf for leaf in measured.of(planned.name) if _is_judged(leaf)]
        for output in dict.fromkeys(leaf.output for leaf in leaves):
            found = _lax(measured, planned.name, [leaf for leaf in leaves if leaf.output == output])
            if found is not None:
                yield found


def spread_cases(measured: Measured) -> frozenset[str]:
    """Control inputs with spread within a row."""
    return frozenset(m.name for m in measured.observation.control_inputs if m.family not in FLAT_FAMILIES)


def tells(leaf: Measurement) -> bool:
    """Whether the bound of the leaf is small enough to tell a right output from a wrong one."""
    return leaf.norm is not None and leaf.norm.allowed <= telling_bound(leaf.tolerance.rtol, leaf.norm.scale)


def has_contrast(measured: Measured, leaves: Sequence[Measurement]) -> bool:
    """Whether a wrong output would show at one input at least (see `Contrast`). Equal outputs have nothing to show."""
    bounds = {leaf.case: leaf.norm.allowed for leaf in leaves if leaf.norm}
    output = leaves[0].output if leaves else ""
    known = [c for c in measured.observation.contrasts if c.output == output and c.case in bounds]
    return not known or any(
        all(distance == 0 or distance > bounds[c.case] for distance in (c.zeros, c.other, c.rolled)) for c in known
    )


def _is_judged(leaf: Measurement) -> bool:
    return leaf.norm is not None and not leaf.is_exact and not leaf.faults and not leaf.excused and leaf.norm.scale > 0


def _lax(measured: Measured, target: TargetName, leaves: Sequence[Measurement]) -> Lax | None:
    spread = spread_cases(measured)
    spread_leaves = [leaf for leaf in leaves if leaf.case in spread]
    lax = [leaf for leaf in spread_leaves if is_lax(leaf.comparison, leaf.tolerance)]
    # An artifact that agrees to the last bit is right, whatever the tolerance.
    if 2 * len(lax) <= len(spread_leaves) or not any(leaf.norm.measured for leaf in lax if leaf.norm):
        return None
    scale = statistics.median(leaf.comparison.expected_max_abs for leaf in spread_leaves)
    # Entries that stand far out have a bound of their own: what is lax is that of the others.
    lax = [replace(leaf, norm=whole_norm(leaf.comparison, leaf.tolerance)) for leaf in lax]
    ordered = sorted(lax, key=lambda leaf: -(leaf.norm.measured if leaf.norm else 0.0))
    failing = tuple(leaf for leaf in ordered if _exceeds(leaf, scale))
    is_meant = _is_declared(measured, target) and has_contrast(measured, leaves)
    weights = weights_of(measured, target)
    # Whatever is allowed, a file of other weights is not the model's, unless it rounds them on purpose.
    is_other = weights is not None and weights.differing_count > 0 and not weights.quantised
    if _is_rounding(measured, target, failing) or (is_meant and not is_other):
        failing = ()
    return Lax(target=target, output=lax[0].output, scale=scale, leaves=tuple(ordered), failing=failing)


def _exceeds(leaf: Measurement, scale: float) -> bool:
    """Whether it differs by more than a thousandth of this output, and of its usual size."""
    share = telling_share(leaf.tolerance.rtol)
    return leaf.norm is not None and leaf.norm.measured > share * max(leaf.norm.scale, scale)


def _is_rounding(measured: Measured, target: TargetName, failing: Sequence[Measurement]) -> bool:
    """Whether eager's noise excuses each leaf whose noise was measured, which includes the worst ones."""
    noise = {(n.case, n.output): n for seen in measured.seen(target) for n in seen.noise}
    known = [(leaf, noise[leaf.case, leaf.output]) for leaf in failing if (leaf.case, leaf.output) in noise]
    return bool(known) and all(is_excused(leaf.comparison, second_tolerance(leaf.tolerance), n) for leaf, n in known)


def _is_declared(measured: Measured, target: TargetName) -> bool:
    """Whether somebody wrote the tolerance down, so that it is intended."""
    contract = measured.contract
    own = next(planned.tolerance for planned in contract.targets if planned.name == target)
    # An rtol that is not too large by itself says nothing of an atol that is.
    rtol = own.rtol if own.rtol is not None else contract.tolerance.rtol
    return own.atol is not None or contract.tolerance.atol is not None or (rtol or 0.0) > MOST_TELLING
