"""A node of the file to the module and the source line that it comes from, as torch's exporter notes them."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from export_gate.wall.source import SourceLine
from export_gate.worker.process.failures import lines_of_trace

SCOPES, TRACE = "pkg.torch.onnx.name_scopes", "pkg.torch.onnx.stack_trace"
"""Keys of a node's metadata (torch 2.13)."""


def origin(node: Any, roots: tuple[Path, ...]) -> tuple[str, SourceLine | None]:
    """Path of the innermost module, and the innermost line of the project's own code; empty if the file has none."""
    notes = {entry.key: entry.value for entry in node.metadata_props}
    source, _ = lines_of_trace(notes.get(TRACE, ""), roots)
    return _module(notes.get(SCOPES, "")), source


def _module(scopes: str) -> str:
    """The last scope is the operator's own."""
    try:
        names = ast.literal_eval(scopes) if scopes else []
    except (SyntaxError, ValueError):
        return ""
    return str(names[-2]) if isinstance(names, list) and len(names) > 1 else ""
