"""Turn YAML text into a tree of nodes.

PyYAML supplies the events. Composing them here, instead of constructing objects, keeps positions, reads scalars as
YAML 1.2, refuses what a config must not contain (duplicate keys, tags, a second document), and limits nesting and
expansion.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import yaml

from export_gate.config.nodes import Allowance, Node, Unreadable, Value, join, relocate, shorten
from export_gate.config.problems import Problems
from export_gate.config.record import Position
from export_gate.config.scalars import MAX_DIGITS, resolve
from export_gate.wall.contract import Scalar

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml if PyYAML was built with it: a 1 MiB file takes 0.3 s instead of 6."""
START = Position(line=1, column=1)
_MAX_KEY = 100
"""As long as the longest names that the grammar allows."""


def read_document(text: str, problems: Problems, allowance: Allowance, loader: Any = LOADER) -> Node:
    """Return the tree of the only document in `text`; mistakes that do not stop reading go to `problems`.

    Raises:
        Unreadable: the text is not YAML, is empty or is too large.
    """
    try:
        return _Composer(yaml.parse(text, Loader=loader), problems, allowance).document()
    except yaml.MarkedYAMLError as error:
        at = _position(error.problem_mark or error.context_mark)
        said = " ".join(filter(None, (error.problem, error.context)))
        raise Unreadable(at, "", f"expected YAML, got a syntax error: {said}") from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # PyYAML lets "\UFFFFFFFF" reach chr()
        said = str(error).splitlines()[0]
        raise Unreadable(START, "", f"expected YAML, got a syntax error: {said}") from error


class _Composer:
    """One pass over the events of one file."""

    def __init__(self, events: Iterator[Any], problems: Problems, allowance: Allowance) -> None:
        self._events, self._problems, self._allowance = events, problems, allowance
        self._anchors: dict[str, Node | None] = {}
        """None while the anchored value is still open."""

    def document(self) -> Node:
        next(self._events)  # StreamStart
        # After it comes DocumentStart, or the end of an empty file.
        if isinstance(next(self._events), yaml.StreamEndEvent):
            raise Unreadable(START, "", "expected a config with version and models, got an empty file")
        root = self._node(next(self._events), "", "", None, 0)
        next(self._events)  # DocumentEnd
        after = next(self._events)
        if not isinstance(after, yaml.StreamEndEvent):
            at = _position(after.start_mark)
            raise Unreadable(at, "", "expected one YAML document, got a second one; keep only the first")
        return root

    def _node(self, event: Any, path: str, key: str, key_at: Position | None, depth: int) -> Node:
        at = _position(event.start_mark)
        self._allowance.take(at, path, depth)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, path, key, key_at, depth)
        self._refuse_tag(event, path)
        if event.anchor:
            self._anchors[event.anchor] = None
        value: Value
        if isinstance(event, yaml.ScalarEvent):
            value = self._scalar(event, path, at)
        elif isinstance(event, yaml.SequenceStartEvent):
            value = self._list(path, depth)
        else:
            value = self._mapping(path, depth)
        node = Node(path=path, key=key, at=at, key_at=key_at or at, value=value, text=getattr(event, "value", ""))
        if event.anchor:
            self._anchors[event.anchor] = node
        return node

    def _refuse_tag(self, event: Any, path: str) -> None:
        if event.tag is not None:
            message = f"expected no YAML tag, got {shorten(event.tag)}; remove it, and quote the value if it is text"
            self._problems.add(_position(event.start_mark), path, message)

    def _scalar(self, event: Any, path: str, at: Position) -> Scalar:
        if event.style:  # None or "" for a plain scalar, by loader
            if any("\ud800" <= char <= "\udfff" for char in event.value):
                self._problems.add(at, path, "expected text, got half of a surrogate pair; write the whole character")
                return str(event.value.encode("utf-8", "replace").decode())
            return str(event.value)
        try:
            return resolve(event.value)
        except ValueError as error:
            raise Unreadable(at, path, f"expected a number of at most {MAX_DIGITS} characters, got {error}") from error

    def _list(self, path: str, depth: int) -> tuple[Node, ...]:
        items: list[Node] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._node(event, f"{path}[{len(items)}]", "", None, depth + 1))
        return tuple(items)

    def _mapping(self, path: str, depth: int) -> dict[str, Node]:
        merged: dict[str, Node] = {}
        entries: dict[str, Node] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            at = _position(event.start_mark)
            is_merge = isinstance(event, yaml.ScalarEvent) and not event.style and event.value == "<<"
            key, is_good = self._key(event, path, depth)
            node = self._node(next(self._events), join(path, key), key, at, depth + 1)
            if is_merge:
                merged = {**self._merge(node, path, depth), **merged}
            elif is_good and key in entries:
                first = entries[key].key_at.line
                self._problems.add(
                    at, node.path, f"expected each key once, got it again; it is already on line {first}"
                )
            elif is_good:
                entries[key] = node
        # A key of its own overrides a merged one, wherever `<<` stands.
        return {**merged, **entries}

    def _key(self, event: Any, path: str, depth: int) -> tuple[str, bool]:
        """The key as text, and whether it is a valid key."""
        at = _position(event.start_mark)
        if not isinstance(event, yaml.ScalarEvent):
            # Read to its end, so that the next event is the value's first.
            self._node(event, path, "", None, depth + 1)
            kinds = {yaml.AliasEvent: "an alias", yaml.SequenceStartEvent: "a list"}
            self._problems.add(at, path, f"expected text as a key, got {kinds.get(type(event), 'a mapping')}")
            return "?", False
        value = self._scalar(event, path, at)
        if not isinstance(value, str):
            what = "an empty key" if event.value == "" else event.value[:_MAX_KEY]
            self._problems.add(at, path, f"expected text as a key, got {what}; quote it")
            return event.value[:_MAX_KEY], False
        self._refuse_tag(event, path)
        if len(value) > _MAX_KEY:
            message = f"expected a key of at most {_MAX_KEY} characters, got {len(value)}: {shorten(value)}"
            self._problems.add(at, path, message)
        return value[:_MAX_KEY], len(value) <= _MAX_KEY

    def _merge(self, node: Node, path: str, depth: int) -> dict[str, Node]:
        """Entries that `<<` merges; if several mappings have a key, the first one counts."""
        sources = node.value if isinstance(node.value, tuple) else (node,)
        if not all(isinstance(source.value, dict) for source in sources):
            self._problems.expected(node, "a mapping or a list of mappings to merge")
            return {}
        entries: dict[str, Node] = {}
        for source in sources:
            for child in source.children:
                if child.key not in entries:
                    entries[child.key] = relocate(child, join(path, child.key), self._allowance, depth + 1)
        return entries

    def _alias(self, event: Any, path: str, key: str, key_at: Position | None, depth: int) -> Node:
        at = _position(event.start_mark)
        name = shorten(event.anchor)
        if event.anchor not in self._anchors:
            raise Unreadable(at, path, f"expected the name of an anchor above, got {name}; define it with &")
        anchored = self._anchors[event.anchor]
        if anchored is None:
            raise Unreadable(at, path, f"expected an anchor that is complete, got {name}, which contains this alias")
        return replace(relocate(anchored, path, self._allowance, depth), key=key, at=at, key_at=key_at or at)


def _position(mark: Any) -> Position:
    return Position(line=mark.line + 1, column=mark.column + 1) if mark else START
