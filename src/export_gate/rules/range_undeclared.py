"""Inputs without a declared range, at which wide values were not tried."""

from __future__ import annotations

from collections.abc import Iterator

from export_gate.rules.base import Finding, Rule
from export_gate.rules.measure import Measured
from export_gate.rules.wording import listing


def check(measured: Measured) -> Iterator[Finding]:
    """One note that lists the inputs."""
    contract, observation = measured.contract, measured.observation
    undeclared = observation.controls.undeclared_range if observation.controls else ()
    if undeclared:
        is_one = len(undeclared) == 1
        yield Finding(
            rule=RULE.name,
            severity="note",
            model=contract.name,
            message=(
                f"{contract.name}: {'input' if is_one else 'inputs'} {listing(undeclared)} "
                f"{'has' if is_one else 'have'} no declared range, so only standard normal values were tried"
            ),
            hint=(
                f"Add `range: [low, high]` (or `values`) to `models.{contract.name}.inputs.{undeclared[0]}`, so that "
                "its limits, halves, offsets and large values are verified too."
            ),
            occurrences=len(undeclared),
            key=f"inputs.{undeclared[0]}",
        )


RULE = Rule(
    name="range-undeclared",
    severity="note",
    summary="An input has no declared range, so wide values were not tried.",
    stage="eager",
    waivable=None,
    check=check,
)
