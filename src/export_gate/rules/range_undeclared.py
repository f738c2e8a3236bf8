"""Inputs without a declared range, at which only mild values were tried."""

from __future__ import annotations

from collections.abc import Iterator

from export_gate.rules.base import Finding, Rule
from export_gate.rules.measure import Measured
from export_gate.rules.wording import listing


def check(measured: Measured) -> Iterator[Finding]:
    """A violation for integers, of which only 0 and 1 were tried, and a note for the others."""
    contract, observation = measured.contract, measured.observation
    if observation.controls and observation.controls.undeclared_integers:
        yield _integers(contract.name, observation.controls.undeclared_integers)
    undeclared = observation.controls.undeclared_range if observation.controls else ()
    if undeclared:
        is_one = len(undeclared) == 1
        yield RULE.finding(
            contract.name,
            (
                f"{'input' if is_one else 'inputs'} {listing(undeclared)} "
                f"{'has' if is_one else 'have'} no declared range, so only standard normal values were tried"
            ),
            hint=(
                f"Add `range: [low, high]` (or `values`) to `models.{contract.name}.inputs.{undeclared[0]}`, so that "
                "its limits, halves, offsets and large values are verified too."
            ),
            occurrences=len(undeclared),
            key=f"inputs.{undeclared[0]}",
        )


def _integers(model: str, undeclared: tuple[str, ...]) -> Finding:
    is_one = len(undeclared) == 1
    return RULE.finding(
        model,
        (
            f"integer {'input' if is_one else 'inputs'} {listing(undeclared)} "
            f"{'has' if is_one else 'have'} no declared range and {'indexes' if is_one else 'index'} no table of "
            "weights, so only 0 and 1 were tried"
        ),
        hint=(
            f"Add `range: [low, high]` (or `values`) to `models.{model}.inputs.{undeclared[0]}`: whatever the model "
            "does with other integers was not compared."
        ),
        severity="violation",
        occurrences=len(undeclared),
    )


RULE = Rule(
    name="range-undeclared",
    severity="note",
    summary="An input has no declared range, so wide values were not tried.",
    stage="eager",
    waivable=None,
    owner="contract",
    check=check,
)
