"""Where a checkout begins."""

from __future__ import annotations

import os.path
from pathlib import Path


def repository_root(folder: Path) -> Path:
    """The folder or its nearest parent that contains `.git`; else the folder itself."""
    return next((up for up in (folder, *folder.parents) if os.path.lexists(up / ".git")), folder)


def in_repository(path: Path) -> tuple[Path, str]:
    """The root of the checkout that the file is in, and its path from there, as git writes it."""
    root = repository_root(path.parent)
    return root, path.relative_to(root).as_posix()
