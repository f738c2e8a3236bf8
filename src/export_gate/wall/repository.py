"""Where a checkout begins, and where the paths in a config do."""

from __future__ import annotations

import os.path
from pathlib import Path


def repository_root(folder: Path) -> Path:
    """The folder or its nearest parent that contains `.git`; else the folder itself."""
    return next((up for up in (folder, *folder.parents) if os.path.lexists(up / ".git")), folder)


def config_folder(config: Path) -> Path:
    """The folder in which the relative paths of a config start."""
    # The link's, if the config is one: there the files are looked for when it is read, and there its lock is.
    return Path(os.path.abspath(config)).parent.resolve()  # noqa: PTH100 - resolve() follows the link itself


def in_repository(path: Path) -> tuple[Path, str]:
    """The root of the checkout that the file is in, and its path from there, as git writes it."""
    root = repository_root(path.parent)
    return root, path.relative_to(root).as_posix()


def whole_root(folder: Path) -> Path:
    """As `repository_root`, of the outermost checkout of which the folder's is a submodule."""
    root = repository_root(folder)
    outer = repository_root(root.parent)
    return whole_root(outer) if outer != root and _names(outer, root) else root


def _names(outer: Path, inner: Path) -> bool:
    """Whether the checkout says that the inner one is a submodule of it; a home folder under git does not."""
    try:
        lines = (outer / ".gitmodules").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    pairs = (line.partition("=") for line in lines)
    paths = [value.strip().strip('"') for key, _, value in pairs if key.strip() == "path"]
    return inner.relative_to(outer).as_posix() in paths
