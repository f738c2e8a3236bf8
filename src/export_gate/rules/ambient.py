"""Eager's answer depends on the clock, the environment, the locale or the working directory."""

from __future__ import annotations

from collections.abc import Iterator

from export_gate.rules.base import Finding, Rule
from export_gate.rules.measure import Measured
from export_gate.rules.nondeterministic_model import describe_difference
from export_gate.rules.numbers import spread
from export_gate.rules.wording import first_line
from export_gate.wall.observation import AmbientEffect, Surrounding

OTHERWISE: dict[Surrounding, str] = {
    "clock": "once the clock is 400 days later",
    "environment": "in another environment (user, time zone, other variables)",
    "locale": "in another locale",
    "working directory": "in another working directory",
}


def check(measured: Measured) -> Iterator[Finding]:
    """One warning for each of them."""
    model = measured.contract.name
    for effect in measured.observation.ambient:
        worst = effect.outputs[0] if effect.outputs else None
        output = worst.output if worst else None
        yield RULE.finding(
            model,
            _what(effect),
            hint=(
                "Read it in the factory, or take it as an input: an exported program keeps what it was at the export, "
                "and eager does not."
            ),
            output=output,
            case=effect.case,
            details=spread(worst, "as it is", f"with another {effect.surrounding}") if worst else (),
        )


def _what(effect: AmbientEffect) -> str:
    if effect.raised:
        return f"eager raises {OTHERWISE[effect.surrounding]}: {first_line(effect.raised)}"
    return f"eager answers otherwise {OTHERWISE[effect.surrounding]}: {describe_difference(effect.outputs[0])}"


RULE = Rule(
    name="ambient",
    severity="warning",
    summary="Eager's answer depends on the clock, the environment, the locale or the working directory.",
    stage="eager",
    waivable=("output",),
    owner="model",
    cause="ambient",
    check=check,
)
