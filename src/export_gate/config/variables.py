"""Environment variables of the project's code: names to pass on, or names with values."""

# ruff: noqa: D102 - Kind documents expected, check and schema

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from export_gate.config.containers import ListOf, Table
from export_gate.config.kinds import INVALID, Schema, Scope, Text
from export_gate.config.nodes import Node
from export_gate.wall.variables import may_be_passed

NAME = Text(
    expected="the name of an environment variable (letters, digits, '_'; first no digit)",
    pattern="[A-Za-z_][A-Za-z0-9_]*",
    max_length=100,
)
_VALUE = Text(expected="text as the variable's value", pattern=r"[^\x00]*", max_length=4000)
_LISTED = ListOf(item=NAME, unique=True, expected="a list of variables to pass on")
_GIVEN = Table(key=NAME, value=_VALUE, expected="a mapping of variables to their values")
_REFUSED = "a variable that is neither a credential nor the CI runner's own"
_INSTEAD = "fetch what needs it in an earlier step, and pass its path"


@dataclass(frozen=True, slots=True, kw_only=True)
class Variables:
    """Either form; becomes a dict of names, with None in place of a value that the caller's environment has."""

    expected: str = "a list of variables to pass on, or a mapping of variables to their values"

    def check(self, node: Node, scope: Scope) -> Any:
        if not isinstance(node.value, (tuple, dict)):
            return scope.refused(node, self.expected)
        is_list = isinstance(node.value, tuple)
        found = _LISTED.check(node, scope) if is_list else _GIVEN.check(node, scope)
        refused = [child for child in node.children if not may_be_passed(_name(child, is_list=is_list))]
        for child in refused:
            if is_list:
                scope.problems.expected(child, _REFUSED, then=_INSTEAD)
            else:
                scope.problems.expected_key(child, _REFUSED, then=_INSTEAD)
        if found is INVALID or refused or len(found) < len(node.children):
            return INVALID
        return dict.fromkeys(found) if is_list else found

    def schema(self, defs: Schema) -> Schema:
        return {"anyOf": [_LISTED.schema(defs), _GIVEN.schema(defs)]}


def _name(child: Node, *, is_list: bool) -> str:
    return str(child.value if is_list else child.key)
