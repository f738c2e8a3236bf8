"""Add further models to the text of an existing config, which keeps its lines and their order."""

from __future__ import annotations

import re

from export_gate.config.document import read_document
from export_gate.config.nodes import Allowance, Node
from export_gate.config.problems import Problems
from export_gate.wall.errors import UserError

WRITTEN = 2
"""How far the further models are indented as they come."""


def extended(text: str, further: str, shown: str) -> str:
    """The config with the further models at the end of its `models`.

    Args:
        text: a valid config, with line ends as they are in the file, which stay.
        further: models as lines, each name indented by two.
        shown: the config's name in messages.

    Raises:
        UserError: `models` is not written as a mapping with a line for each model.
    """
    if "\r\n" in text:
        return extended(text.replace("\r\n", "\n"), further, shown).replace("\n", "\r\n")
    lines = text.splitlines(keepends=True)
    root = read_document(text, Problems(), Allowance())
    models = root.child("models")
    if models is None or not models.children or _is_flow(models, lines):
        raise UserError(
            f"{shown}: `models` is written in one line, which cannot be extended",
            "write each model's name on a line of its own, or name another file with -c",
        )
    end = _end(root, models, lines)
    head, tail = "".join(lines[:end]), "".join(lines[end:])
    # chr(10), because an expression in an f-string cannot contain a backslash before Python 3.12.
    return f"{head.rstrip()}\n{_indented(further, models.children[0].key_at.column - 1)}{tail and chr(10) + tail}"


def _is_flow(models: Node, lines: list[str]) -> bool:
    return lines[models.at.line - 1][models.at.column - 1] == "{"


def _end(root: Node, models: Node, lines: list[str]) -> int:
    """The number of lines up to the next key of the file, without the comments that stand above that one."""
    later = [node.key_at.line - 1 for node in root.children if node.key_at.line > models.key_at.line]
    end = min(later, default=len(lines))
    # At the end of the file, comments belong to the models above them.
    while later and re.fullmatch(r"#.*\s*|\s*", lines[end - 1]):
        end -= 1
    return end


def _indented(further: str, column: int) -> str:
    """The lines with the indentation of the existing models."""
    lines = (line[WRITTEN:] for line in further.splitlines(keepends=True))
    return "".join(" " * column + line if line.strip() else "\n" for line in lines)
