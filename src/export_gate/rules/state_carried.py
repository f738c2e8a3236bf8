"""The model remembers earlier calls, which an artifact may do differently or not at all."""

from __future__ import annotations

import re
from collections.abc import Iterator

from export_gate.rules.base import Finding, Rule
from export_gate.rules.measure import Measured
from export_gate.rules.nondeterministic_model import describe_difference
from export_gate.rules.numbers import spread
from export_gate.rules.wording import listing, made_at
from export_gate.wall.contract import ModelContract
from export_gate.wall.observation import Comparison, HygieneObservation


def check(measured: Measured) -> Iterator[Finding]:
    """A violation for each output that depends on earlier calls; a note for state that affects no output."""
    contract, observation = measured.contract, measured.observation
    changed = observation.hygiene.state_changed
    for worst in observation.hygiene.state_effects:
        yield _effect(contract, worst, observation.hygiene)
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


def _effect(contract: ModelContract, worst: Comparison, hygiene: HygieneObservation) -> Finding:
    changed = hygiene.state_changed
    state = f" (forward changes {listing(changed, limit=3)})" if changed else ""
    return RULE.finding(
        contract.name,
        (
            f"the result depends on earlier calls{state}: a used "
            f"instance and a fresh one differ in {describe_difference(worst)}"
        ),
        hint=state_advice(hygiene),
        output=worst.output,
        measured=worst.max_abs_diff,
        allowed=0.0,
        source=hygiene.state_writing,
        details=changed + spread(worst, "a fresh instance", "a used one"),
    )


HOMES = {
    "attribute": "an attribute of the module",
    "buffer": "a buffer, which ONNX files do not keep from call to call",
    "class": "an attribute of the class, which all instances share",
    "closure": "a variable of the function around it",
    "default": "a default argument, which is made once and shared by all calls",
    "global": "a global variable of the file",
}
LAST_NAME = re.compile(r"(\w+)\W*(?::|$)")


def state_advice(hygiene: HygieneObservation) -> str:
    """The next step: what holds the state, and what the contract needs once it goes in and out."""
    home = hygiene.state_home
    where = f"`{home.name}` is {HOMES[home.kind]}{made_at(home.source)}. " if home else ""
    names = dict.fromkeys(found[1] for change in hygiene.state_changed if (found := LAST_NAME.search(_path(change))))
    listed = listing([f"`{name}`" for name in names], limit=3)
    declared = f" (the contract then has {listed} under `inputs`, and the new values are outputs)" if names else ""
    return (
        f"{where}Make the state an input and an output of forward{declared}, or, if it is to stay as it is in use, "
        "write it only when `self.training`: an artifact starts from the state at export and never changes it."
    )


def _path(change: str) -> str:
    """`seen['n']` of `seen['n']: 14 -> 15`."""
    return change.partition(": ")[0].rstrip("0123456789[]")


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
