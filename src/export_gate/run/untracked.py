"""List the files of a checkout that git does not track, also those in submodules."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from export_gate.run.git import git_paths

IGNORES = ".gitignore"
OWN = ".export-gate"
"""The report folder, which ignores itself."""


def shown_untracked(root: Path) -> tuple[str, ...]:
    """Files that nobody ignores; a repository in this one is one folder."""
    own = git_paths(root, "ls-files", "--others", "--exclude-standard")
    theirs = (f"{path}/{name}" for path in submodules(root) for name in shown_untracked(root / path))
    return (*(path.rstrip("/") for path in own), *theirs)


def all_untracked(root: Path, differing: Collection[str]) -> tuple[str, ...]:
    """Files, and folders without any tracked file, that the repository does not say are left out.

    What only this machine ignores (info/exclude, core.excludesFile, a `.gitignore` that is not committed) is missing
    elsewhere all the same.

    Args:
        root: of the checkout.
        differing: tracked files that are not as committed.
    """
    found = git_paths(root, "ls-files", "--others", "--directory", "--no-empty-directory")
    own = [path.rstrip("/") for path in found if not _is_own(path)]
    tracked = {path for path in git_paths(root, "ls-files", "--", f":(glob)**/{IGNORES}") if path not in differing}
    left_out = set(_ignored_by(root, own, tracked))
    theirs = (
        f"{path}/{name}"
        for path in submodules(root)
        for name in all_untracked(root / path, [each.removeprefix(f"{path}/") for each in differing])
    )
    return (*(path for path in own if path not in left_out), *theirs)


def submodules(root: Path) -> list[str]:
    """Those that are checked out."""
    entries = (entry.partition("\t") for entry in git_paths(root, "ls-files", "--stage"))
    return [path for mode, _, path in entries if mode.startswith("160000 ") and (root / path / ".git").exists()]


def _is_own(path: str) -> bool:
    return path.rstrip("/").rpartition("/")[2] == OWN


def _ignored_by(root: Path, paths: Collection[str], sources: Collection[str]) -> Iterator[str]:
    """Those paths whose last pattern is of these files and ignores them."""
    words = iter(git_paths(root, "check-ignore", "-v", "--stdin", given=paths)) if paths else iter(())
    for source, _, pattern, path in zip(words, words, words, words, strict=False):
        if source in sources and not pattern.startswith("!"):
            yield path
