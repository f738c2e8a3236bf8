"""Eager does not agree with itself, so that no artifact can agree with it."""

from __future__ import annotations

from collections.abc import Iterator

from export_gate.rules.base import Finding, Rule
from export_gate.rules.measure import Measured
from export_gate.rules.numbers import spread
from export_gate.rules.wording import count, listing, place, scientific
from export_gate.wall.contract import ModelContract
from export_gate.wall.observation import Comparison


def check(measured: Measured) -> Iterator[Finding]:
    """One finding for weights that differ between factory calls, one for each output that differs between runs."""
    contract, observation = measured.contract, measured.observation
    hygiene = observation.hygiene
    if hygiene.factory_differs:
        yield Finding(
            rule=RULE.name,
            severity="violation",
            model=contract.name,
            message=(
                f"{contract.name}: two calls of the factory with the same seeds give different weights: "
                f"{listing(hygiene.factory_differs)}"
            ),
            hint=(
                "Load the weights from a checkpoint, or draw them from `torch.manual_seed` alone: other random "
                "sources, the clock, and a generator kept between calls make every instance a different model."
            ),
            occurrences=len(hygiene.factory_differs),
            details=hygiene.factory_differs,
        )
    for worst in hygiene.nondeterministic:
        yield _finding(contract, worst, hygiene.repeats)
    if observation.random_operators and hygiene.draws and not hygiene.nondeterministic:
        yield _drawing(contract, observation.random_operators)


def _drawing(contract: ModelContract, operators: tuple[str, ...]) -> Finding:
    """Randomness that no run showed, because it acts rarely or at some inputs only."""
    return Finding(
        rule=RULE.name,
        severity="violation",
        model=contract.name,
        message=(
            f"{contract.name}: eager draws random numbers without seeding them, although no two runs differed: "
            f"{listing(operators)}"
        ),
        hint=HINT,
        occurrences=len(operators),
        details=operators,
    )


def _finding(contract: ModelContract, worst: Comparison, repeats: int) -> Finding:
    return Finding(
        rule=RULE.name,
        severity="violation",
        model=contract.name,
        output=worst.output,
        message=(
            f"{place(contract.name, output=worst.output)}: eager differs between {count(repeats, 'run')} on the same "
            f"input: {describe_difference(worst)}"
        ),
        hint=HINT,
        measured=worst.max_abs_diff,
        allowed=0.0,
        details=spread(worst, "one run", "another"),
    )


def describe_difference(comparison: Comparison) -> str:
    """What differs between two runs of eager that should be identical."""
    if comparison.expected_dtype != comparison.actual_dtype:
        return f"dtype {comparison.expected_dtype} and {comparison.actual_dtype}"
    if comparison.expected_shape != comparison.actual_shape:
        return f"shape {comparison.expected_shape} and {comparison.actual_shape}"
    return (
        f"{comparison.mismatched_elements} of {comparison.elements} elements, by up to "
        f"{scientific(comparison.max_abs_diff)}"
    )


HINT = (
    "Look for dropout that is always on (`F.dropout` without `training=self.training`), `torch.rand*` in "
    "forward, uninitialised memory (`torch.empty`) and nondeterministic kernels; take randomness as an input "
    "or seed it inside forward. Until this is fixed, differences between artifacts and eager mean nothing."
)

RULE = Rule(
    name="nondeterministic-model",
    severity="violation",
    summary="Eager gives different results for the same input, or the factory different weights.",
    stage="eager",
    waivable=("output",),
    owner="model",
    cause="randomness",
    check=check,
)
