"""Choose the folder in which verdicts are kept."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

VARIABLE = "EXPORT_GATE_CACHE"
"""Names the folder where no option does."""


def choose_folder(named: Path | None, environment: Mapping[str, str]) -> Path | None:
    """The folder that was named, or the user's own; None on a CI runner, where only the workflow knows whose it is."""
    given = environment.get(VARIABLE)
    if named is not None or given:
        return Path(os.path.abspath(named or given or ""))  # noqa: PTH100 - a link stays as it was named
    if environment.get("CI", "").lower() not in ("", "0", "false"):
        return None
    if sys.platform == "win32":
        base = environment.get("LOCALAPPDATA")
    else:
        base = environment.get("XDG_CACHE_HOME") or (f"{home}/.cache" if (home := environment.get("HOME")) else None)
    return Path(base) / "export-gate" if base and os.path.isabs(base) else None  # noqa: PTH117
