"""Read `--kwargs key=value` as the keyword arguments of a factory, in the way in which the config is read."""

from __future__ import annotations

from collections.abc import Iterable

from export_gate.config.document import read_document
from export_gate.config.nodes import Allowance, Node, Unreadable
from export_gate.config.problems import Problems
from export_gate.wall.errors import UserError


def keyword_arguments(given: Iterable[str]) -> dict[str, object]:
    """The arguments by name; a value is YAML, so that `classes=3` is a number and `sizes=[1, 2]` a list.

    Raises:
        UserError: one of them is not `key=value`.
    """
    arguments: dict[str, object] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key.isidentifier():
            raise UserError(f"--kwargs: expected key=value, got {text!r:.80}", "such as `--kwargs classes=3`")
        arguments[key] = _value(key, value)
    return arguments


def _value(key: str, text: str) -> object:
    problems = Problems()
    try:
        # `key=` is an empty text, as in a shell; YAML would read null.
        node = read_document(text, problems, Allowance()) if text else None
    except Unreadable as error:
        raise UserError(f"--kwargs {key}: {error.message}", "quote text that YAML reads as something else") from error
    if problems:
        raise UserError(
            f"--kwargs {key}: expected a number, text, a switch, null, a list or a mapping, got {text!r:.80}"
        )
    return "" if node is None else _plain(node)


def _plain(node: Node) -> object:
    if isinstance(node.value, dict):
        return {name: _plain(child) for name, child in node.value.items()}
    if isinstance(node.value, tuple):
        return [_plain(child) for child in node.value]
    return node.value
