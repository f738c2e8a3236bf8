"""Find the statement that a line of source code belongs to, and write it on one line."""

from __future__ import annotations

import ast
import re
import warnings
from functools import lru_cache

LONGEST = 200
"""Characters of a statement of several lines that are written as one; of a longer one the line alone is."""
OPENED, CLOSED = re.compile(r"([(\[{]) "), re.compile(r",? ([)\]}])")


def statement_at(rows: tuple[str, ...], line: int) -> str:
    """The statement around a line, or the head of one that has a body; the line alone if that is not known."""
    alone = rows[line - 1].strip() if 0 < line <= len(rows) else ""
    around = [node for node in _statements(rows) if node.lineno <= line <= _end(node)]
    inner = max(around, key=lambda node: node.lineno, default=None)
    if inner is None or _end(inner) == inner.lineno:
        return alone
    text = _on_one_line(inner, rows)
    return text if len(text) <= LONGEST else alone


@lru_cache(maxsize=16)
def _statements(rows: tuple[str, ...]) -> tuple[ast.stmt, ...]:
    """The statements of a file; none of one that is not Python."""
    try:
        with warnings.catch_warnings():
            # About its strings, which are the project's own business.
            warnings.simplefilter("ignore")
            tree = ast.parse("".join(rows))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.stmt))


def _end(node: ast.stmt) -> int:
    """Its last line; of one with a body the last of its head."""
    body: list[ast.stmt] = getattr(node, "body", [])
    return max(node.lineno, _first(body[0]) - 1) if body else node.end_lineno or node.lineno


def _first(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])


def _on_one_line(node: ast.stmt, rows: tuple[str, ...]) -> str:
    """In the author's own spelling, if that means the same without its breaks."""
    lines = [row.strip() for row in rows[node.lineno - 1 : _end(node)]]
    joined = CLOSED.sub(r"\1", OPENED.sub(r"\1", " ".join(lines)))
    if getattr(node, "body", None):
        return joined
    try:
        is_same = ast.dump(ast.parse(joined)) == ast.dump(ast.Module(body=[node], type_ignores=[]))
    except SyntaxError:
        is_same = False
    return joined if is_same else ast.unparse(node)
