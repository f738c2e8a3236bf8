"""Inputs that never change: a scalar, or a tensor of the numbers in nested lists."""

# ruff: noqa: D102, ARG002 - Kind documents expected, check and schema

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from export_gate.config.containers import Field, Section, Values
from export_gate.config.elements import verify_element
from export_gate.config.kinds import INVALID, Anything, Choice, Schema, Scope
from export_gate.config.nodes import Node
from export_gate.wall.contract import DTYPES, ConstantSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantValue:
    """A scalar, or nested lists of numbers."""

    expected: str = "a number, a text, true, false, null or a list of numbers"

    def check(self, node: Node, scope: Scope) -> Any:
        if isinstance(node.value, dict):
            return scope.refused(node, self.expected)
        value = Anything(expected=self.expected).check(node, scope)
        return INVALID if isinstance(value, list) and INVALID in _flat(value) else value

    def schema(self, defs: Schema) -> Schema:
        return {"type": ["boolean", "number", "string", "null", "array"]}


def _flat(value: Any) -> list[Any]:
    return [entry for item in value for entry in _flat(item)] if isinstance(value, list) else [value]


def _verify_constant(values: Values, node: Node, scope: Scope) -> None:
    """Check that lists form a tensor: a dtype that holds their numbers, and rows of one length."""
    value, dtype = node.child("constant"), values.get("dtype")
    if value is None or "constant" not in values:
        return
    if dtype is None:
        if isinstance(value.value, tuple):
            scope.problems.expected(
                value, "a dtype beside a list, which is a tensor", got="none", then="add dtype: float32"
            )
        return
    if _lengths(value) is None:
        scope.problems.expected(value, "rows of one length, as a tensor has them", got="rows of several")
    for item in _numbers_of(value):
        verify_element(item, dtype, scope)


def _lengths(node: Node) -> tuple[int, ...] | None:
    """The shape of nested lists; None if rows differ."""
    if not isinstance(node.value, tuple):
        return ()
    inner = {_lengths(item) for item in node.value}
    only = next(iter(inner)) if len(inner) == 1 else None if inner else ()
    return None if only is None else (len(node.value), *only)


def _numbers_of(node: Node) -> list[Node]:
    if not isinstance(node.value, tuple):
        return [node]
    return [number for item in node.value for number in _numbers_of(item)]


def _make_constant(*, value: Any, dtype: str | None = None) -> ConstantSpec:
    return ConstantSpec(value=tuple(value) if isinstance(value, list) else value, dtype=dtype)


CONSTANT = Section(
    make=_make_constant,
    verify=_verify_constant,
    fields=(
        Field("constant", ConstantValue(), "A fixed argument, baked in at export.", required=True, to="value"),
        Field("dtype", Choice(DTYPES), "Makes a tensor of the number or the nested lists."),
    ),
)
