"""Forward writes to its inputs, which an artifact may or may not do."""

from __future__ import annotations

from collections.abc import Iterator

from export_gate.rules.base import Finding, Rule
from export_gate.rules.wording import listing
from export_gate.wall.contract import ModelContract
from export_gate.wall.observation import ModelObservation


def check(contract: ModelContract, observation: ModelObservation) -> Iterator[Finding]:
    """One finding that names the inputs."""
    mutated = observation.hygiene.mutated_inputs
    if mutated:
        yield Finding(
            rule=RULE.name,
            severity="violation",
            model=contract.name,
            message=(
                f"{contract.name}: forward changes its {'input' if len(mutated) == 1 else 'inputs'} "
                f"{listing(mutated)} in place"
            ),
            hint=(
                "Work on a copy (`x = x.clone()`), or replace the in-place operators (`add_`, `x[...] = `, `out=`): "
                "ONNX cannot write to its inputs, so the caller's tensor would keep its old values there."
            ),
            occurrences=len(mutated),
        )


RULE = Rule(
    name="input-mutated",
    severity="violation",
    summary="Forward changes its inputs in place.",
    check=check,
)
