"""What one model's process read and looked for, so that its verdict holds until one of these things changes."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependencies:
    """Paths are absolute and those of the machine; what belongs to an installed package is in `sites` alone."""

    model: str
    files: tuple[str, ...] = ()
    """What was read, and what was looked for, whether it exists or not."""
    missing: tuple[str, ...] = ()
    """Those of them that did not exist when they were looked for."""
    written: tuple[str, ...] = ()
    """Files that the process itself wrote."""
    folders: tuple[str, ...] = ()
    """Folders whose entries were listed."""
    variables: tuple[str, ...] = ()
    """Environment variables that were asked for, set or not; `*` where all were listed."""
    modules: tuple[str, ...] = ()
    """Top-level modules that were imported or not found."""
    path: tuple[str, ...] = ()
    """Folders of `sys.path` that hold the project's own modules."""
    packages: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Folder of a package of the project -> submodules that were imported from it or not found in it."""
    sites: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Folder of installed packages -> the entries in it of which something is imported."""
    unknown: tuple[str, ...] = ()
    """Why the process may depend on more than this: its verdict is never reused."""
