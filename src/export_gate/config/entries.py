"""Entries of `shape`, `range` and `values`."""

# ruff: noqa: D102, ARG002 - Kind documents expected, check and schema

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from export_gate.config.containers import ListOf
from export_gate.config.kinds import Number, Schema, Scope, is_number
from export_gate.config.nodes import Node
from export_gate.wall.contract import Size
from export_gate.wall.sizes import LINEAR, MAX_SIZE, parse_expression, parse_size


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeEntry:
    """One entry of a shape."""

    expected: str = LINEAR

    def check(self, node: Node, scope: Scope) -> Any:
        value = node.value
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_SIZE:
            return Size(offset=value)
        try:
            return parse_size(value if isinstance(value, str) else "")
        except ValueError as error:
            is_size = is_number(value) and isinstance(value, int)
            return scope.refused(node, f"a size from 0 to {MAX_SIZE}" if is_size else str(error))

    def schema(self, defs: Schema) -> Schema:
        expression = {"type": "string", "pattern": r"^[A-Za-z0-9_+\-* ]+$", "maxLength": 100}
        return {"anyOf": [{"type": "integer", "minimum": 0, "maximum": MAX_SIZE}, expression]}


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundEntry:
    """One end of a range: a number, or an expression in dims."""

    expected: str = "a number, or a sum of dims such as seq-1"

    def check(self, node: Node, scope: Scope) -> Any:
        if isinstance(node.value, str) and re.search(r"[A-Za-z_]", node.value):
            try:
                return parse_expression(node.value)
            except ValueError:
                return scope.refused(node, self.expected)
        return Number().check(node, scope)

    def schema(self, defs: Schema) -> Schema:
        pattern = r"^[A-Za-z0-9_+\-* ]*[A-Za-z_][A-Za-z0-9_+\-* ]*$"
        return {"anyOf": [{"type": "number"}, {"type": "string", "pattern": pattern, "maxLength": 100}]}


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedEntry:
    """One allowed value, or those of one position."""

    expected: str = "a number, or a list of numbers"

    def check(self, node: Node, scope: Scope) -> Any:
        return (_AT_POSITION if isinstance(node.value, tuple) else Number()).check(node, scope)

    def schema(self, defs: Schema) -> Schema:
        return {"anyOf": [Number().schema(defs), _AT_POSITION.schema(defs)]}


_AT_POSITION = ListOf(item=Number(), minimum=1, expected="a list of at least one number")
SHAPE = ListOf(item=SizeEntry(), expected="a list of sizes")
