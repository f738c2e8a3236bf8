"""Kinds that hold other kinds: lists, tables with free keys, sections with known keys."""

# ruff: noqa: D102 - Kind documents expected, check and schema

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from export_gate.config.kinds import INVALID, Choice, Kind, Schema, Scope, Text
from export_gate.config.nodes import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOf:
    """A list whose entries have one kind; becomes a tuple."""

    item: Kind
    expected: str
    minimum: int = 0
    maximum: int | None = None
    unique: bool = False

    def check(self, node: Node, scope: Scope) -> Any:
        items = node.value
        if not isinstance(items, tuple) or not self._fits(len(items)):
            return scope.refused(node, self.expected, got=self._length(items))
        # All of them, so that every mistake is reported at once.
        values = [self.item.check(item, scope) for item in items]
        if any(value is INVALID for value in values):
            return INVALID
        if self.unique:
            scope.problems.each_once(items)
        return tuple(values)

    def _fits(self, length: int) -> bool:
        return self.minimum <= length and (self.maximum is None or length <= self.maximum)

    @staticmethod
    def _length(items: object) -> str:
        if not isinstance(items, tuple) or not items:
            return ""
        return f"a list of {len(items)}"

    def schema(self, defs: Schema) -> Schema:
        schema: Schema = {"type": "array", "items": self.item.schema(defs)}
        if self.minimum:
            schema["minItems"] = self.minimum
        if self.maximum is not None:
            schema["maxItems"] = self.maximum
        return schema | ({"uniqueItems": True} if self.unique else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A mapping with free keys and values of one kind; becomes a dict of its valid entries."""

    key: Text
    value: Kind
    expected: str
    minimum: int = 0

    def check(self, node: Node, scope: Scope) -> Any:
        if not isinstance(node.value, dict) or len(node.value) < self.minimum:
            return scope.refused(node, self.expected)
        for child in node.children:
            if not self.key.matches(child.key):
                scope.problems.expected_key(child, f"{self.key.expected} as key")
        # Under a key that was refused as well: every mistake is reported at once.
        values = {key: self.value.check(child, scope) for key, child in node.value.items()}
        # Without the invalid ones, so that checks of several keys still see the others.
        return {key: value for key, value in values.items() if value is not INVALID}

    def schema(self, defs: Schema) -> Schema:
        # Keys of a JSON object are always text.
        keys = {key: value for key, value in self.key.schema(defs).items() if key != "type"}
        schema: Schema = {"type": "object", "propertyNames": keys, "additionalProperties": self.value.schema(defs)}
        return schema | ({"minProperties": self.minimum} if self.minimum else {})


@dataclass(frozen=True, slots=True)
class Field:
    """A known key of a section."""

    key: str
    kind: Kind
    text: str
    """Its meaning, shown by editors."""
    required: bool = False
    to: str = ""
    """Name of the record's field, if it is not the key with underscores."""
    default: object = None
    """The default that editors show, if the record does not have it."""

    @property
    def name(self) -> str:
        """Field of the record."""
        return self.to or self.key.replace("-", "_")


Values = dict[str, Any]
"""Key -> valid value of a section."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A mapping with known keys; becomes a record."""

    fields: tuple[Field, ...]
    make: Callable[..., Any]
    """Called with the values by field name, and with `name` (the section's own key) if `named`."""
    expected: str = "a mapping"
    title: str = ""
    """Name of its definition in the JSON Schema, if it is used more than once."""
    named: bool = False
    may_be_null: bool = False
    """Whether a key without a value means an empty mapping."""
    verify: Callable[[Values, Node, Scope], None] | None = None
    """Checks that involve several keys; receives only values that are valid by themselves."""

    def check(self, node: Node, scope: Scope) -> Any:
        known = {field.key: field for field in self.fields}
        entries = {} if node.value is None and self.may_be_null else node.value
        if not isinstance(entries, dict):
            return scope.refused(node, self.expected)
        for child in entries.values():
            if child.key not in known:
                then = scope.problems.nearest(child.key, known)
                scope.problems.expected_key(child, f"one of the keys {', '.join(known)}", then=then)
        values = {key: field.kind.check(entries[key], scope) for key, field in known.items() if key in entries}
        for key in (key for key, value in values.items() if value is INVALID):
            self._name_home(entries[key], scope)
        missing = [field for field in self.fields if field.required and field.key not in entries]
        for field in missing:
            path = f"{node.path}.{field.key}" if node.path else field.key
            scope.problems.add(node.key_at, path, f"expected {field.kind.expected}, but the required key is missing")
        valid = {key: value for key, value in values.items() if value is not INVALID}
        if self.verify:
            self.verify(valid, node, scope)
        if missing or len(valid) < len(values):
            return INVALID
        name = {"name": node.key} if self.named else {}
        return self.make(**name, **{known[key].name: value for key, value in valid.items()})

    def _name_home(self, node: Node, scope: Scope) -> None:
        """Say which other key takes the word that this one refused."""
        for field in self.fields:
            item = field.kind.item if isinstance(field.kind, ListOf) else field.kind
            if isinstance(node.value, str) and isinstance(item, Choice) and node.value in item.options:
                written = f"[{node.value}]" if item is not field.kind else node.value
                scope.problems.add(node.at, node.path, f"did you mean `{field.key}: {written}`?")

    def schema(self, defs: Schema) -> Schema:
        if not self.title:
            return self._schema(defs)
        if self.title not in defs:
            # A placeholder ends the recursion of a section that contains itself.
            defs[self.title] = {}
            defs[self.title] = self._schema(defs)
        return {"$ref": f"#/$defs/{self.title}"}

    def _schema(self, defs: Schema) -> Schema:
        schema: Schema = {
            "type": ["object", "null"] if self.may_be_null else "object",
            "properties": {field.key: self._property(field, defs) for field in self.fields},
            "additionalProperties": False,
        }
        required = [field.key for field in self.fields if field.required]
        return schema | ({"required": required} if required else {})

    def _property(self, field: Field, defs: Schema) -> Schema:
        schema = field.kind.schema(defs) | {"description": field.text}
        default = _defaults(self.make).get(field.name, field.default)
        if isinstance(default, tuple):
            default = list(default)
        # An empty default tells an editor nothing.
        return schema if default in (None, [], {}) or not _is_json(default) else schema | {"default": default}


def _defaults(make: Callable[..., Any]) -> Values:
    """Defaults of the record's fields, so that the schema takes them from the records."""
    fields = dataclasses.fields(make) if dataclasses.is_dataclass(make) and isinstance(make, type) else ()
    return {field.name: field.default for field in fields if field.default is not dataclasses.MISSING}


def _is_json(value: object) -> bool:
    return isinstance(value, (bool, int, float, str)) or (isinstance(value, list) and all(map(_is_json, value)))
