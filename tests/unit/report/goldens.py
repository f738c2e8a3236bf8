"""Texts as they were reviewed, in `tests/golden/report`."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "golden" / "report"


def golden(name: str, text: str) -> str:
    """The golden file of that name; with UPDATE_GOLDEN set, `text` is written to it first."""
    path = FOLDER / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    return path.read_text(encoding="utf-8")
