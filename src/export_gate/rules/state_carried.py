"""The model remembers earlier calls, which an artifact may do differently or not at all."""

from __future__ import annotations

from collections.abc import Iterator

from export_gate.rules.base import Finding, Rule
from export_gate.rules.measure import Measured
from export_gate.rules.nondeterministic_model import describe_difference
from export_gate.rules.numbers import spread
from export_gate.rules.wording import listing
from export_gate.wall.contract import ModelContract
from export_gate.wall.observation import Comparison
from export_gate.wall.source import SourceLine


def check(measured: Measured) -> Iterator[Finding]:
    """A violation for each output that depends on earlier calls; a note for state that affects no output."""
    contract, observation = measured.contract, measured.observation
    changed = observation.hygiene.state_changed
    for worst in observation.hygiene.state_effects:
        yield _effect(contract, worst, changed, observation.hygiene.state_writing)
    if changed and not observation.hygiene.state_effects:
        yield RULE.finding(
            contract.name,
            f"forward changes state that no output showed: {listing(changed, limit=3)}",
            hint=(
                "Move counters, caches and logs out of forward: export drops them or freezes them at their current "
                "value."
            ),
            severity="note",
            occurrences=len(changed),
            details=changed,
        )


def _effect(contract: ModelContract, worst: Comparison, changed: tuple[str, ...], source: SourceLine | None) -> Finding:
    state = f" (forward changes {listing(changed, limit=3)})" if changed else ""
    return RULE.finding(
        contract.name,
        (
            f"the result depends on earlier calls{state}: a used "
            f"instance and a fresh one differ in {describe_difference(worst)}"
        ),
        hint=(
            "Make the state an input and an output of forward, or recompute it in every call: an artifact starts "
            "from the state at export and never changes it."
        ),
        output=worst.output,
        measured=worst.max_abs_diff,
        allowed=0.0,
        source=source,
        details=changed + spread(worst, "a fresh instance", "a used one"),
    )


RULE = Rule(
    name="state-carried",
    severity="violation",
    summary="Outputs depend on earlier calls of the same instance.",
    stage="eager",
    waivable=("output",),
    owner="model",
    cause="state",
    check=check,
)
