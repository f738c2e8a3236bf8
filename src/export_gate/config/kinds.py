"""Kinds of value: each checks a node and writes its own JSON Schema, so both come from one declaration.

Hand-written, without a validation library: importing one would take longer than the whole command should, and its
messages would have to be parsed again to add positions, expectations and the nearest key.
"""

# ruff: noqa: D102, ARG002 - Kind documents expected, check and schema

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol, TypeGuard

from export_gate.config.nodes import Node
from export_gate.config.problems import Problems
from export_gate.config.scalars import MAX_DIGITS, resolve

Schema = dict[str, Any]


class _Invalid:
    def __repr__(self) -> str:
        return "INVALID"


INVALID: Final = _Invalid()
"""What a check returns after it has reported a problem."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What a check needs in addition to the node."""

    folder: Path
    """The config's folder, absolute."""
    root: Path
    """The repository's root; relative paths must stay inside it."""
    is_past: bool = False
    """Whether the text is that of another commit, whose files need not exist here."""
    problems: Problems = field(default_factory=Problems)

    def refused(self, node: Node, expected: str, *, got: str = "", then: str = "") -> Any:
        """INVALID, after the value of `node` was added to the problems; `then` is the next step."""
        self.problems.expected(node, expected, got=got, then=then)
        return INVALID


class Kind(Protocol):
    """A kind of value."""

    @property
    def expected(self) -> str:
        """The expectation, as messages name it."""

    def check(self, node: Node, scope: Scope) -> Any:
        """The value, or INVALID after adding to the problems."""

    def schema(self, defs: Schema) -> Schema:
        """JSON Schema; named parts go to `defs`."""


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether the value is a finite number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Text of which a pattern matches all."""

    expected: str
    pattern: str
    excluded: tuple[str, ...] = ()
    max_length: int | None = None

    def matches(self, value: object) -> bool:
        """Whether the value is such text."""
        is_short = isinstance(value, str) and (self.max_length is None or len(value) <= self.max_length)
        return is_short and bool(re.fullmatch(self.pattern, str(value))) and value not in self.excluded

    def check(self, node: Node, scope: Scope) -> Any:
        if self.matches(node.value):
            return node.value
        # YAML has read it as a number or a switch, although it fits as text.
        is_scalar = isinstance(node.value, (bool, int, float))
        return scope.refused(node, self.expected, then="quote it" if is_scalar and self.matches(node.text) else "")

    def schema(self, defs: Schema) -> Schema:
        # JSON Schema searches for a pattern; the group keeps the anchors around all alternatives.
        schema: Schema = {"type": "string", "pattern": f"^(?:{self.pattern})$"}
        if self.max_length is not None:
            schema["maxLength"] = self.max_length
        return schema | ({"not": {"enum": list(self.excluded)}} if self.excluded else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A finite number within bounds."""

    minimum: float | None = None
    maximum: float | None = None
    whole: bool = False

    @property
    def expected(self) -> str:
        what = "a whole number" if self.whole else "a number"
        if self.minimum is not None and self.maximum is not None:
            return f"{what} from {self.minimum} to {self.maximum}"
        return what if self.minimum is None else f"{what} of at least {self.minimum}"

    def check(self, node: Node, scope: Scope) -> Any:
        value = node.value
        if is_number(value) and self._admits(value):
            return value
        is_quoted = isinstance(value, str) and _reads_as_number(value)
        is_infinite = isinstance(value, float) and not math.isfinite(value)
        expected = "a finite number" if is_infinite else self.expected
        return scope.refused(node, expected, then="remove the quotes" if is_quoted else "")

    def _admits(self, value: Any) -> bool:
        above = self.minimum is None or value >= self.minimum
        below = self.maximum is None or value <= self.maximum
        return above and below and (isinstance(value, int) or not self.whole)

    def schema(self, defs: Schema) -> Schema:
        bounds = {"minimum": self.minimum, "maximum": self.maximum}
        kind = "integer" if self.whole else "number"
        return {"type": kind} | {key: bound for key, bound in bounds.items() if bound is not None}


def _reads_as_number(text: str) -> bool:
    try:
        return is_number(resolve(text))
    except ValueError:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A positive number, or a text with a unit that `parse` turns into one."""

    expected: str
    pattern: str
    parse: Callable[[str], float]
    maximum: float
    bare: bool = True
    """Whether a number without a unit is valid too."""

    def check(self, node: Node, scope: Scope) -> Any:
        value = node.value
        # The length first: patterns and int() take long for long texts.
        has_unit = isinstance(value, str) and len(value) <= MAX_DIGITS and bool(re.fullmatch(self.pattern, value))
        if isinstance(value, str) and has_unit:
            value = self.parse(value)
        if is_number(value) and 0 < value <= self.maximum and (self.bare or has_unit):
            return float(value)
        return scope.refused(node, self.expected)

    def schema(self, defs: Schema) -> Schema:
        text = {"type": "string", "pattern": f"^(?:{self.pattern})$"}
        number = {"type": "number", "exclusiveMinimum": 0, "maximum": self.maximum}
        return {"anyOf": [number, text]} if self.bare else text


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """true or false."""

    expected: str = "true or false"

    def check(self, node: Node, scope: Scope) -> Any:
        if isinstance(node.value, bool):
            return node.value
        return scope.refused(node, self.expected)

    def schema(self, defs: Schema) -> Schema:
        return {"type": "boolean"}


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few words."""

    options: tuple[str, ...]

    @property
    def expected(self) -> str:
        return f"one of {', '.join(self.options)}"

    def check(self, node: Node, scope: Scope) -> Any:
        if isinstance(node.value, str) and node.value in self.options:
            return node.value
        return scope.refused(node, self.expected, then=scope.problems.nearest(node.value, self.options))

    def schema(self, defs: Schema) -> Schema:
        return {"enum": list(self.options)}


@dataclass(frozen=True, slots=True)
class Exactly:
    """Exactly one whole number."""

    value: int
    expected: str

    def check(self, node: Node, scope: Scope) -> Any:
        # True == 1 == 1.0 in Python.
        if node.value == self.value and type(node.value) is int:
            return self.value
        return scope.refused(node, self.expected)

    def schema(self, defs: Schema) -> Schema:
        return {"const": self.value}


@dataclass(frozen=True, slots=True, kw_only=True)
class Anything:
    """Any value that JSON can carry to the worker: no NaN or infinity."""

    expected: str = "a value"
    nested: bool = True
    """Whether lists and mappings are valid too."""

    def check(self, node: Node, scope: Scope) -> Any:
        value = node.value
        if isinstance(value, float) and not math.isfinite(value):
            return scope.refused(node, "a finite number", then="create it in the model's factory")
        if isinstance(value, (tuple, dict)) and not self.nested:
            return scope.refused(node, self.expected)
        if isinstance(value, tuple):
            return [self.check(item, scope) for item in value]
        return {key: self.check(item, scope) for key, item in value.items()} if isinstance(value, dict) else value

    def schema(self, defs: Schema) -> Schema:
        return {} if self.nested else {"type": ["boolean", "number", "string", "null"]}
