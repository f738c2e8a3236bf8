"""What forward returns."""

# ruff: noqa: D102 - Kind documents expected, check and schema

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from export_gate.config.containers import Field, Section, Table
from export_gate.config.entries import SHAPE
from export_gate.config.kinds import Choice, Schema, Scope, Text
from export_gate.config.names import OUTPUT_NAME
from export_gate.config.nodes import Node
from export_gate.config.paths import ONE_LINE
from export_gate.wall.contract import DTYPES, Output

_OUTPUT = Section(
    title="output",
    make=Output,
    named=True,
    may_be_null=True,
    fields=(
        Field("dtype", Choice(DTYPES), "Element type that eager must return."),
        Field("shape", SHAPE, "Shape that eager must return."),
        Field("nonfinite", Choice(("match", "forbid", "allow")), "How to judge NaN and inf in the output."),
        Field(
            "where",
            Text(expected="a mask input's name, or all", pattern=ONE_LINE),
            "Compare only what this mask input keeps; all: also what masks switch off.",
        ),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputSpec:
    """A mapping of properties, or a word for a leaf that is not compared."""

    section: Section = _OUTPUT
    words: tuple[Literal["none", "ignore"], ...] = ("none", "ignore")

    @property
    def expected(self) -> str:
        """As for every kind."""
        return f"{self.section.expected}, or {' or '.join(self.words)}"

    def check(self, node: Node, scope: Scope) -> Any:
        if not isinstance(node.value, str):
            return self.section.check(node, scope)
        word = next((word for word in self.words if word == node.value), None)
        if word is None:
            return scope.refused(node, self.expected, then=scope.problems.nearest(node.value, self.words))
        return Output(name=str(node.key), leaf=word)

    def schema(self, defs: Schema) -> Schema:
        return {"anyOf": [self.section.schema(defs), {"enum": list(self.words)}]}


OUTPUTS = Table(key=OUTPUT_NAME, expected="a mapping of outputs by name", value=OutputSpec())
