"""What forward takes: tensors, constants, and lists, tuples and dicts of them."""

# ruff: noqa: D102 - Kind documents expected, check and schema

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from export_gate.config.constants import CONSTANT
from export_gate.config.containers import Field, ListOf, Section, Table
from export_gate.config.kinds import Schema, Scope, Text
from export_gate.config.names import NAME
from export_gate.config.nodes import Node
from export_gate.config.paths import ATTRIBUTE, ONE_LINE
from export_gate.config.tensors import TENSOR
from export_gate.wall.contract import DictSpec, SequenceSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSpec:
    """A tensor, a constant, or a list, tuple or dict of inputs."""

    expected: str = TENSOR.expected

    def check(self, node: Node, scope: Scope) -> Any:
        keys = node.value if isinstance(node.value, dict) else {}
        return next((form for key, form in FORMS.items() if key in keys), TENSOR).check(node, scope)

    def schema(self, defs: Schema) -> Schema:
        if "input" not in defs:
            # A placeholder ends the recursion: a list of inputs contains inputs.
            defs["input"] = {}
            defs["input"] = {"anyOf": [form.schema(defs) for form in (TENSOR, *FORMS.values())]}
        return {"$ref": "#/$defs/input"}


_ITEMS = ListOf(item=InputSpec(), minimum=1, expected="a list of at least one input")
_BUILD = Field("build", ATTRIBUTE, "What makes forward's argument from the tensors: module:attribute.")
_KEY = Text(expected="a text of one line", pattern=ONE_LINE)


def _sequence(kind: Literal["list", "tuple"]) -> Section:
    items = Field(kind, _ITEMS, f"A {kind} of inputs.", required=True, to="items")
    return Section(make=partial(SequenceSpec, kind=kind), fields=(items, _BUILD))


FORMS = {
    "constant": CONSTANT,
    "list": _sequence("list"),
    "tuple": _sequence("tuple"),
    "dict": Section(
        make=DictSpec,
        fields=(
            Field(
                "dict",
                Table(key=_KEY, value=InputSpec(), minimum=1, expected="a mapping of at least one input"),
                "A dict of inputs, in this order.",
                required=True,
                to="items",
            ),
            _BUILD,
        ),
    ),
}
INPUTS = Table(key=NAME, value=InputSpec(), minimum=1, expected="a mapping of at least one input by name")
