"""Waivers: violations that are accepted until a date, each with its reason."""

# ruff: noqa: D102, ARG002 - Kind documents expected, check and schema

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

from export_gate.config.containers import Field, ListOf, Section, Values
from export_gate.config.kinds import Schema, Scope, Text
from export_gate.config.nodes import Node
from export_gate.config.paths import ONE_LINE
from export_gate.wall.contract import NAME_OF_TARGET, Waiver

if TYPE_CHECKING:
    from export_gate.rules.base import Named

_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"


@dataclass(frozen=True, slots=True)
class Day:
    """A calendar day as ISO text; YAML 1.2 does not have dates, so the value is text."""

    expected: str = "a date such as 2027-01-31"

    def check(self, node: Node, scope: Scope) -> Any:
        if is_day(node.value):
            return node.value
        is_unreal = isinstance(node.value, str) and bool(re.fullmatch(_DAY, node.value))
        return scope.refused(node, self.expected, then="this day does not exist" if is_unreal else "")

    def schema(self, defs: Schema) -> Schema:
        return {"type": "string", "format": "date", "pattern": f"^{_DAY}$"}


def is_day(text: object) -> bool:
    """Whether the text is a valid ISO date; only such texts sort in the order of their dates."""
    # The pattern too, because from Python 3.11 on fromisoformat accepts other forms, which do not sort as text.
    if not isinstance(text, str) or not re.fullmatch(_DAY, text):
        return False
    try:
        return bool(date.fromisoformat(text))
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class WaivableRule:
    """The name of a rule that a waiver can accept."""

    expected: str = "the name of a rule that can be waived"

    def check(self, node: Node, scope: Scope) -> Any:
        waivable = _waivable()
        if isinstance(node.value, str) and node.value in waivable:
            return node.value
        then = scope.problems.nearest(node.value, waivable) or f"use one of {', '.join(waivable)}"
        rule = _named().get(node.value) if isinstance(node.value, str) else None
        if rule is not None and rule.severity == "violation":
            then = "it reports that something was not measured, which no waiver can accept"
        return scope.refused(node, self.expected, then=then)

    def schema(self, defs: Schema) -> Schema:
        return {"enum": list(_waivable())}


def _named() -> dict[str, Named]:
    # Not above: the rules take longer to import than everything else that reads a config, and few configs have waivers.
    from export_gate.rules import NAMED  # noqa: PLC0415

    return NAMED


def _waivable() -> tuple[str, ...]:
    return tuple(name for name, rule in _named().items() if rule.waivable is not None)


def _verify_parts(values: Values, node: Node, scope: Scope) -> None:
    """Check that a waiver names only parts that its rule's findings have."""
    rule = values.get("rule")
    for part in ("target", "output", "case"):
        child = node.child(part)
        if rule is not None and child is not None and part not in (_named()[rule].waivable or ()):
            expected = f"no {part} for {rule}, whose findings have no {part}"
            scope.problems.expected_key(child, expected, then="remove the key")


def verify_waived_targets(targets: Collection[str], node: Node, scope: Scope) -> None:
    """Check that a waiver names a target of its model."""
    waivers = node.child("waivers")
    for waiver in waivers.children if waivers else ():
        target = waiver.child("target")
        if target and _TARGET.matches(target.value) and target.value not in targets:
            then = scope.problems.nearest(target.value, targets)
            scope.problems.expected(target, f"a target of the model ({', '.join(targets)})", then=then)


_TARGET = Text(expected="the name of a target", pattern=NAME_OF_TARGET)
_GLOB = Text(expected="a pattern of one line such as halves-*", pattern=ONE_LINE, max_length=200)

WAIVERS = ListOf(
    expected="a list of waivers",
    item=Section(
        title="waiver",
        make=Waiver,
        expected="a mapping with rule, reason and until",
        verify=_verify_parts,
        fields=(
            Field("rule", WaivableRule(), "The rule whose violations are accepted.", required=True),
            Field("target", _TARGET, "Accept only violations of this target."),
            Field("output", _GLOB, "Accept only violations of outputs that match this pattern."),
            Field("case", _GLOB, "Accept only violations at control inputs that match this pattern."),
            Field(
                "reason",
                Text(
                    expected="a reason of one line, up to 300 characters",
                    pattern=rf"(?=.*\S){ONE_LINE}",
                    max_length=300,
                ),
                "The reason; every report shows it.",
                required=True,
            ),
            Field("until", Day(), "The last day (UTC) on which the waiver applies, such as 2027-01-31.", required=True),
        ),
    ),
)
