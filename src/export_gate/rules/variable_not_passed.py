"""The project's code looks for an environment variable that it does not get, and may then make another model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from export_gate.rules.base import Finding, Rule
from export_gate.rules.measure import Measured
from export_gate.rules.wording import listing
from export_gate.wall.variables import may_be_passed


def check(measured: Measured) -> Iterator[Finding]:
    """One warning each for variables to pass on, for those that cannot be, and for those that are not set."""
    contract, missed = measured.contract, measured.observation.variables_missed
    unset = [name for name in missed if name in contract.env]
    kept = [name for name in missed if name not in contract.env and not may_be_passed(name)]
    forgotten = [name for name in missed if name not in (*unset, *kept)]
    if forgotten:
        yield _finding(
            contract.name,
            forgotten,
            "set where the gate was started, but not passed on, so the model may not be the one that ships",
            f"Add `env: [{', '.join(forgotten)}]` to `models.{contract.name}` (or at the top level) to pass "
            f"{_it(forgotten)} on, or set a value that is the same everywhere: `env: {{{forgotten[0]}: ...}}`.",
        )
    if kept:
        yield _finding(
            contract.name,
            kept,
            "set where the gate was started, but never passed on: it may hold a credential, or is the CI runner's own",
            "Fetch what needs it before the gate runs, and let the project's code read the files.",
        )
    if unset:
        yield _finding(
            contract.name,
            unset,
            "to be passed on (`env`), but not set where the gate was started",
            f"Set {_it(unset)} there, or give a value in the config: `env: {{{unset[0]}: ...}}`.",
        )


def _finding(model: str, names: Sequence[str], state: str, hint: str) -> Finding:
    is_one = len(names) == 1
    return RULE.finding(
        model,
        (
            f"the project's code looks for the environment {'variable' if is_one else 'variables'} "
            f"{listing(names)}, which {'is' if is_one else 'are'} {state}"
        ),
        hint=hint,
        occurrences=len(names),
        key="env",
    )


def _it(names: Sequence[str]) -> str:
    return "it" if len(names) == 1 else "them"


RULE = Rule(
    name="variable-not-passed",
    severity="warning",
    summary="The project's code looks for an environment variable that is not passed on to it.",
    stage="eager",
    waivable=(),
    owner="contract",
    check=check,
)
