"""The tree that a config file is read into: values with their positions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Union

from export_gate.config.record import Position

# Far below Python's recursion limit, as the tree is read and checked recursively.
MAX_DEPTH = 50
MAX_VALUES = 40_000
"""Limits the work, which aliases, merge keys and defaults can multiply."""

Value = Union[None, bool, int, float, str, "tuple[Node, ...]", "dict[str, Node]"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One value of the config."""

    path: str
    """Dotted key, with list entries as `[0]`; empty for the whole file."""
    key: str = ""
    """Last key of `path`."""
    at: Position
    key_at: Position
    """Position of the key; equal to `at` if there is no key."""
    value: Value
    text: str = ""
    """A scalar as written in the file."""

    def child(self, key: str) -> Node | None:
        """The value under `key`, if this is a mapping that has it."""
        return self.value.get(key) if isinstance(self.value, dict) else None

    @property
    def children(self) -> tuple[Node, ...]:
        """Direct children, in the order in which they are written."""
        if isinstance(self.value, dict):
            return tuple(self.value.values())
        return self.value if isinstance(self.value, tuple) else ()


class Unreadable(Exception):  # noqa: N818 - names a state of the file; it never leaves this package
    """The file cannot be read past this position."""

    def __init__(self, at: Position, path: str, message: str) -> None:
        super().__init__(message)
        self.at, self.path, self.message = at, path, message


class Allowance:
    """How many values may still be created from the file, its aliases and its defaults."""

    def __init__(self) -> None:
        self._left = MAX_VALUES

    def take(self, at: Position, path: str, depth: int) -> None:
        """Count one value.

        Raises:
            Unreadable: too many values or too deep.
        """
        self._left -= 1
        if depth > MAX_DEPTH:
            raise Unreadable(at, path, f"expected at most {MAX_DEPTH} levels of nesting, got more")
        if self._left < 0:
            limit = f"expected at most {MAX_VALUES} values once aliases and defaults are expanded, got more"
            raise Unreadable(at, path, f"{limit}; use fewer aliases or split the config")


def join(path: str, key: str) -> str:
    """Dotted key of `key` under `path`; unusual keys are quoted, so that the result stays on one line."""
    shown = key if re.fullmatch(r"[\w.<-]+", key, re.ASCII) else shorten(key)
    return f"{path}.{shown}" if path else shown


def shorten(text: str) -> str:
    """The text in quotes with control characters escaped, at most about 60 characters."""
    return repr(text) if len(text) <= 60 else f"{text[:60]!r}..."  # noqa: PLR2004 - said in the docstring


def describe(node: Node) -> str:
    """The value, as messages name it after "got"."""
    value = node.value
    if value is None:
        return "nothing"
    if isinstance(value, str):
        return shorten(value)
    if isinstance(value, tuple):
        return "a list" if value else "an empty list"
    if isinstance(value, dict):
        return "a mapping" if value else "an empty mapping"
    return node.text


def relocate(node: Node, path: str, allowance: Allowance, depth: int = 0) -> Node:
    """Copy the tree to another dotted key; positions stay those of the original."""
    # Counted again: each alias and each default is a copy, and ten levels of ten aliases are ten billion.
    allowance.take(node.at, path, depth)
    value = node.value
    if isinstance(value, dict):
        value = {k: relocate(item, join(path, k), allowance, depth + 1) for k, item in value.items()}
    elif isinstance(value, tuple):
        value = tuple(relocate(item, f"{path}[{i}]", allowance, depth + 1) for i, item in enumerate(value))
    return Node(path=path, key=node.key, at=node.at, key_at=node.key_at, value=value, text=node.text)
