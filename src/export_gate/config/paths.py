"""Paths in the config: relative to its folder, and inside the repository."""

# ruff: noqa: D102 - Kind documents expected, check and schema

from __future__ import annotations

import os.path
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import Any, Literal

from export_gate.config.kinds import INVALID, Schema, Scope, Text
from export_gate.config.nodes import Node

ONE_LINE = r"[^\x00-\x1f\x7f-\x9f\u2028\u2029]+"
"""Text without control characters, which would break a terminal line or a path."""

_DOTTED = r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*"
ATTRIBUTE = Text(
    expected="module:attribute or path/to/file.py:attribute",
    pattern=rf"(?:{_DOTTED}|[^\x00-\x1f\x7f-\x9f\u2028\u2029:]*[^\x00-\x1f\x7f-\x9f\u2028\u2029:/]\.py):{_DOTTED}",
)

_RELATIVE = "a path relative to the config's folder"


@dataclass(frozen=True, slots=True, kw_only=True)
class RelativePath:
    """A path that stays inside the repository.

    Only the text is checked: `..` is counted and symbolic links are not followed, so a linked data folder is allowed.
    """

    must_be: Literal["file", "folder", "file or folder", "anything"] = "anything"
    suffixes: tuple[str, ...] = ()
    expected: str = _RELATIVE

    def check(self, node: Node, scope: Scope) -> Any:
        text = Text(expected=self.expected, pattern=ONE_LINE).check(node, scope)
        if text is INVALID:
            return INVALID
        expected, then = ("", "") if scope.is_past else self._mistake(text, scope)
        if expected:
            return scope.refused(node, expected, then=then)
        return text

    def _mistake(self, text: str, scope: Scope) -> tuple[str, str]:
        """The expectation and the next step; both empty if the path is valid."""
        full = Path(os.path.normpath(scope.folder / text))
        # A Windows path is refused on Linux too, because machines share a config.
        if Path(text).is_absolute() or PureWindowsPath(text).anchor:
            return _RELATIVE, "an absolute path works on only one machine"
        if not full.is_relative_to(scope.root):
            return "a path inside the repository", "it leaves the repository; copy or link the file into it"
        # os.path returns False for a name that is too long for the file system; pathlib raises
        is_file, is_folder = os.path.isfile(full), os.path.isdir(full)  # noqa: PTH112, PTH113 - see above
        if self.suffixes and full.suffix not in self.suffixes and not (is_folder and "folder" in self.must_be):
            return f"a file that ends in {', '.join(self.suffixes)}", ""
        if not (is_file and "file" in self.must_be) and not (is_folder and "folder" in self.must_be):
            is_free = self.must_be == "anything"
            return ("", "") if is_free else (f"a {self.must_be} that exists", "paths start at the config's folder")
        return "", ""

    def schema(self, defs: Schema) -> Schema:
        return Text(expected=self.expected, pattern=ONE_LINE).schema(defs)


def default_pythonpath(folder: Path) -> tuple[str, ...]:
    """The config's folder, and its `src` if there is one."""
    source = folder / "src"
    return (str(folder), str(source)) if source.is_dir() else (str(folder),)
