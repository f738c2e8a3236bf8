"""Remove folders from the stack traces in a program: an artifact must not depend on the path of its export."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from torch.export import ExportedProgram

INSTALLED = re.compile(r'(?<=File ")[^"]*/(?:site-packages|dist-packages|lib/python3\.\d+)/')


def shorten_traces(program: ExportedProgram, roots: Sequence[Path]) -> None:
    """Make the paths in every node's stack trace relative to the project or to where packages are installed."""
    for module in program.graph_module.modules():
        for node in getattr(getattr(module, "graph", None), "nodes", ()):
            trace = node.meta.get("stack_trace")
            if trace:
                node.meta["stack_trace"] = relative(trace, roots)


def relative(trace: str, roots: Iterable[Path]) -> str:
    """The text without the project's folders and those of installed packages in its paths."""
    # Longest first, because one root may be inside another.
    for root in sorted({str(root) for root in roots}, key=len, reverse=True):
        trace = trace.replace(f'File "{root}/', 'File "')
    return INSTALLED.sub("", trace)
