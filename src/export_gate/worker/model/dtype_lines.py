"""Find the lines of the project that give the model a dtype for which a runtime may lack kernels."""

from __future__ import annotations

import linecache
import re
import sys
from pathlib import Path

from export_gate.wall.source import SourceLine
from export_gate.worker.process.failures import is_own, quoted_line

NAMES = {
    "bfloat16": re.compile(r"\bbfloat16\b"),
    "float16": re.compile(r"\bfloat16\b|\.half\(\)|\btorch\.half\b|\bautocast\("),
}
"""How Python asks for a dtype of 16 bits."""
MOST = 8


def lines_naming(dtype: str, roots: tuple[Path, ...]) -> tuple[SourceLine, ...]:
    """The lines of imported files of the project that ask for the dtype; none for other dtypes."""
    if dtype not in NAMES:
        return ()
    paths = {str(getattr(module, "__file__", None) or "") for module in list(sys.modules.values())}
    own = sorted(path for path in paths if path and is_own(path, roots))
    places = [
        (path, number)
        for path in own
        for number, row in enumerate(linecache.getlines(path), start=1)
        if NAMES[dtype].search(row.partition("#")[0])
    ]
    return tuple(quoted_line(*place) for place in places[:MOST])
