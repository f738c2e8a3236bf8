"""Forward writes to its inputs, which an artifact may or may not do."""

from __future__ import annotations

from collections.abc import Iterator

from export_gate.rules.base import Finding, Rule
from export_gate.rules.keys import axis_key
from export_gate.rules.measure import Measured
from export_gate.rules.wording import listing


def check(measured: Measured) -> Iterator[Finding]:
    """One finding that names the inputs."""
    contract, observation = measured.contract, measured.observation
    mutated = observation.hygiene.mutated_inputs
    if mutated:
        own = mutated[0].partition(".")[0]
        yield RULE.finding(
            contract.name,
            f"forward changes its {'input' if len(mutated) == 1 else 'inputs'} {listing(mutated)} in place",
            hint=(
                f"Begin forward with `{own} = {own}.clone()`, or avoid the in-place operators (`add_`, `x[...] = y`, "
                "`out=`). Eager overwrites the caller's tensor, and an ONNX file cannot: code that uses that tensor "
                "after the call would see other values than with the file."
            ),
            occurrences=len(mutated),
            source=observation.hygiene.mutating,
            key=axis_key(contract, mutated[0]),
        )


RULE = Rule(
    name="input-mutated",
    severity="violation",
    summary="Forward changes its inputs in place.",
    stage="eager",
    waivable=(),
    owner="model",
    cause="mutation",
    check=check,
)
