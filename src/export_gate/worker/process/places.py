"""Whose a file is: the project's, an installed package's, or that of Python and of the gate."""

from __future__ import annotations

import importlib.util
import os
import sysconfig
from pathlib import Path

SITES = ("site-packages", "dist-packages")
"""Names of the folders that installers put packages into."""
SYSTEM = tuple(f"{os.sep}{name}{os.sep}" for name in ("proc", "sys", "dev"))
"""Files that the system makes up when they are read."""
SHARED = f"{os.sep}dev{os.sep}shm{os.sep}"
"""Not those: anybody may keep files in memory there."""
GATE = f"{Path(__file__).resolve().parents[2]}{os.sep}"
STDLIB = tuple(
    {
        f"{named}{os.sep}"
        for folder in (*map(sysconfig.get_paths().get, ("stdlib", "platstdlib")), str(Path(os.__file__).parent))
        if folder
        for named in (folder, os.path.realpath(folder))
    }
)


def site_of(path: str) -> str:
    """The folder of installed packages that the file is in; empty if it is in none."""
    ends = [place + len(name) + 1 for name in SITES if (place := path.find(f"{os.sep}{name}{os.sep}")) >= 0]
    return path[: min(ends)] if ends else ""


def is_foreign(path: str) -> bool:
    """Whether it is code or data of Python, of an installed package, of the gate or of the system."""
    is_system = path.startswith(SYSTEM) and not path.startswith(SHARED)
    return is_system or bool(site_of(path)) or path.startswith((*STDLIB, GATE, "<"))


def source_of(path: str) -> str:
    """The source that a compiled file stands for; other files stand for themselves."""
    if not path.endswith(".pyc"):
        return path
    try:
        return importlib.util.source_from_cache(path)
    except ValueError:
        return path
