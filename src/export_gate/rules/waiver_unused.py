"""A waiver that accepts nothing: its cause is gone, or it never matched."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from export_gate.rules.base import Finding, Named
from export_gate.wall.contract import ModelContract, Waiver


def check(contract: ModelContract, used: Collection[Waiver]) -> Iterator[Finding]:
    """One finding for each waiver of the model that is not among the used ones."""
    for number, waiver in enumerate(contract.waivers):
        if waiver not in used:
            found = RULE.finding(
                contract.name,
                f"the waiver of {waiver.rule}{_scope(waiver)} until {waiver.until} matches nothing",
                hint=(
                    f"Remove `models.{contract.name}.waivers[{number}]`: its cause is gone. If it is not, compare its "
                    "target, output and case with the finding's."
                ),
                key=f"waivers[{number}]",
            )
            # The message is about the waiver, which may name a target that is gone.
            named = contract.target(waiver.target) if waiver.target else None
            yield replace(found, target=named.name) if named else found


def _scope(waiver: Waiver) -> str:
    parts = (
        waiver.target,
        None if waiver.output == "*" else f"output '{waiver.output}'",
        None if waiver.case == "*" else f"case {waiver.case}",
    )
    named = ", ".join(part for part in parts if part)
    return f" ({named})" if named else ""


RULE = Named(
    name="waiver-unused",
    severity="warning",
    summary="A waiver matches nothing that was found.",
    stage="compare",
    waivable=None,
    owner="contract",
)
