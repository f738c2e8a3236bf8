"""The grammar of targets: their names, the keys that all have, and the options of each kind."""

# ruff: noqa: D102 - Kind documents expected, check and schema

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from export_gate.config.containers import Field, ListOf, Section
from export_gate.config.controls import TOLERANCE
from export_gate.config.kinds import INVALID, Choice, Kind, Number, Schema, Scope, Switch, Text
from export_gate.config.nodes import Node
from export_gate.config.paths import RelativePath
from export_gate.config.units import GROWTH, SIZE
from export_gate.wall import targets
from export_gate.wall.contract import NAME_OF_TARGET, Budget, Target, make_target
from export_gate.wall.targets import KIND_NAMES, KINDS, Option, TargetKind, kind_named

_ARTIFACT = Field("artifact", RelativePath(), "An existing file to verify instead of exporting one.")


def _make_budget(*, max_bytes: float | None = None, **values: Any) -> Budget:
    return Budget(max_bytes=None if max_bytes is None else int(max_bytes), **values)


BUDGET = Section(
    title="budget",
    make=_make_budget,
    expected="a mapping with size and growth",
    fields=(
        Field("size", SIZE, "Maximum size of all files of the artifact together.", to="max_bytes"),
        Field("growth", GROWTH, "Maximum growth over the size in the interface lock, such as 10%."),
        Field("exceeded", Choice(("violation", "warning")), "Severity when exceeded: violation (default) or warning."),
    ),
)
_BUDGET = Field("budget", BUDGET, "Limits on the artifact's size.")
_TOLERANCE = Field("tolerance", TOLERANCE, "Tolerance of this target; overrides the model's.")
_GUARDS = "How to judge out-of-range input that is accepted."


def _values(option: Option) -> Kind:
    match option.values:
        case targets.Switch():
            return Switch()
        case targets.Whole(minimum=minimum, maximum=maximum):
            return Number(minimum=minimum, maximum=maximum, whole=True)
        case targets.OneOf(words=words):
            return Choice(words)
        case targets.Words(pattern=pattern, one=one, several=several):
            return ListOf(item=Text(expected=one, pattern=pattern), minimum=1, unique=True, expected=several)


def _section(kind: TargetKind) -> Section:
    own = Field("kind", Choice((kind.name,)), "The kind of target; by default the target's own name.")
    guards = Field("guards", Choice(("require", "warn", "ignore")), _GUARDS, default=kind.guards)
    options = (Field(each.name, _values(each), each.text, default=each.default) for each in kind.options)
    files = (_ARTIFACT, _BUDGET) if kind.has_file else ()
    return Section(
        title=kind.name,
        make=partial(_make_target, kind.name),
        named=True,
        may_be_null=True,
        fields=(own, _TOLERANCE, guards, *options, *files),
    )


def _make_target(entry: str, *, name: str, kind: str = "", **values: Any) -> Target:
    return make_target(kind or entry, name=name, **values)


_NAME = Text(
    expected="a target name (letters, digits, '.', '_', '-'; first a letter or digit; at most 40)",
    pattern=NAME_OF_TARGET,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetsSpec:
    """Targets by name: a target that is not called like a kind says its `kind`."""

    fields: tuple[Field, ...]
    """One of each kind, under its name."""
    expected: str = "a mapping of targets"

    def check(self, node: Node, scope: Scope) -> Any:
        if not isinstance(node.value, dict):
            return scope.refused(node, self.expected)
        values = [self._check(child, scope) for child in node.children]
        if any(value is INVALID for value in values):
            return INVALID
        self._verify_files(node.children, values, scope)
        # In the order in which the pipeline runs them, and those of one kind as they are listed.
        return tuple(sorted(values, key=lambda target: KIND_NAMES.index(target.kind)))

    def _check(self, node: Node, scope: Scope) -> Any:
        section = self._section(node, scope)
        return INVALID if section is None else section.check(node, scope)

    def _section(self, node: Node, scope: Scope) -> Kind | None:
        """What the target of that key is checked by; None after a problem was reported."""
        sections = {field.key: field.kind for field in self.fields}
        stated = node.child("kind")
        if node.key in sections:
            if stated is None or stated.value == node.key:
                return sections[node.key]
            scope.problems.expected(stated, f"{node.key}, the kind of that name", then="give the target another name")
            return None
        if stated is None:
            then = scope.problems.nearest(node.key, sections) or "add `kind`, such as `kind: onnx`"
            known = f"one of the keys {', '.join(sections)}, or a target that has a `kind`"
            scope.problems.expected_key(node, known, then=then)
            return None
        if not _NAME.matches(node.key):
            scope.problems.expected_key(node, f"{_NAME.expected} as key")
            return None
        kind = Choice(tuple(sections)).check(stated, scope)
        return None if kind is INVALID else sections[kind]

    @staticmethod
    def _verify_files(nodes: Sequence[Node], made: Sequence[Target], scope: Scope) -> None:
        """Two targets never share a file, even on file systems that ignore case."""
        seen: dict[str, str] = {}
        for node, target in zip(nodes, made, strict=True):
            file = target.file_name.lower()
            if kind_named(target.kind).has_file and seen.setdefault(file, node.key) != node.key:
                clash = f"{node.key!r} and {seen[file]!r}"
                scope.problems.expected_key(node, "target names whose files differ in more than case", got=clash)

    def schema(self, defs: Schema) -> Schema:
        sections = {field.key: (field.kind.schema(defs), field.text) for field in self.fields}
        named = [{**section, "required": ["kind"]} for section, _ in sections.values()]
        inherited = {"type": ["object", "null"], "not": {"required": ["kind"]}}  # `defaults` may say what it is
        others = "|".join(sections)  # plain words: "\\-" is not an ECMA regular expression
        # The lookahead: JSON Schema applies patterns to the keys of `properties` as well.
        return {
            "type": "object",
            "properties": {key: {**section, "description": text} for key, (section, text) in sections.items()},
            "patternProperties": {f"^(?!(?:{others})$){NAME_OF_TARGET}$": {"anyOf": [*named, inherited]}},
            "additionalProperties": False,
        }


TARGETS = TargetsSpec(fields=tuple(Field(kind.name, _section(kind), kind.text) for kind in KINDS))
