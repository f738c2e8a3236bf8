"""Collect all mistakes in a config, so that they are reported at once."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from itertools import islice

from export_gate.config.nodes import Node, describe, shorten
from export_gate.config.record import Position
from export_gate.wall.words import printable


class Problems:
    """The user's mistakes by position; one that aliases or defaults repeat is kept once."""

    def __init__(self) -> None:
        self._lines: dict[tuple[int, int, str], str] = {}
        # difflib compares every pair of characters: a file full of mistakes must not take minutes.
        self._suggestions_left = 50

    def __bool__(self) -> bool:
        return bool(self._lines)

    def add(self, at: Position, path: str, message: str) -> None:
        """Add a mistake."""
        self._lines.setdefault((at.line, at.column, message), path)

    def expected(self, node: Node, expected: str, *, got: str = "", then: str = "") -> None:
        """Add a mistake about the value of `node`; `then` is the next step."""
        self.add(node.at, node.path, _sentence(expected, got or describe(node), then))

    def expected_key(self, node: Node, expected: str, *, got: str = "", then: str = "") -> None:
        """Add a mistake about the key of `node`."""
        self.add(node.key_at, node.path, _sentence(expected, got or shorten(node.key), then))

    def each_once(self, items: Iterable[Node]) -> None:
        """Add a mistake for every value that an earlier item has as well."""
        seen: set[object] = set()
        for item in items:
            if item.value in seen:
                self.expected(item, "each entry once", got=f"{describe(item)} again")
            seen.add(item.value)

    def nearest(self, word: object, known: Iterable[str]) -> str:
        """Return `did you mean 'Z'?`, or an empty string if no known word is close.

        The cost grows with the number and length of the words, so both are limited: a mistyped word is short.
        """
        if not isinstance(word, str) or len(word) > 100 or not self._suggestions_left:  # noqa: PLR2004 - see above
            return ""
        self._suggestions_left -= 1
        near = difflib.get_close_matches(word, list(islice(known, 100)), n=1, cutoff=0.6)
        return f"did you mean {near[0]!r}?" if near else ""

    def text(self, name: str) -> str:
        """One line per mistake, from the top of the file `name` to its end."""
        by_place = sorted(self._lines.items(), key=lambda item: item[0][:2])
        return "\n".join(
            f"{name}:{line}:{column}: {printable(f'{_clipped(path)}: {message}' if path else message)}"
            for (line, column, message), path in by_place
        )


def _clipped(path: str) -> str:
    return path if len(path) <= 120 else f"{path[:120]}..."  # noqa: PLR2004 - deep nesting, which is a mistake itself


def _sentence(expected: str, got: str, then: str) -> str:
    return f"expected {expected}, got {got}" + (f"; {then}" if then else "")
