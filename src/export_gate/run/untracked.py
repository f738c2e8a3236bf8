"""List the files of a checkout that git tracks, and those that it does not, also in submodules."""

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
    committed = {path for _, _, path in tracked(root) if path.rpartition("/")[2] == IGNORES and path not in differing}
    left_out = set(_ignored_by(root, own, committed))
    theirs = (
        f"{path}/{name}"
        for path in submodules(root)
        for name in all_untracked(root / path, [each.removeprefix(f"{path}/") for each in differing])
    )
    return (*(path for path in own if path not in left_out), *theirs)


def submodules(root: Path) -> list[str]:
    """Those that are checked out."""
    return [path for _, mode, path in tracked(root) if mode == "160000" and (root / path / ".git").exists()]


def tracked(root: Path) -> Iterator[tuple[str, str, str]]:
    """(tag, mode, path) of each tracked file.

    The tag is S or s for skip-worktree, and a lower-case letter for assume-unchanged; `git diff` skips both.
    """
    # One question for all that is asked of the index: see `each_question_once`.
    for entry in git_paths(root, "ls-files", "-v", "--stage"):
        facts, _, path = entry.partition("\t")
        tag, mode = facts.split(" ")[:2]
        yield tag, mode, path


def _is_own(path: str) -> bool:
    return path.rstrip("/").rpartition("/")[2] == OWN


def _ignored_by(root: Path, paths: Collection[str], sources: Collection[str]) -> Iterator[str]:
    """Those paths whose last pattern is of these files and ignores them."""
    # `-v -z` gives the file of the pattern, its line there, the pattern and the path, each as a text of its own.
    words = iter(git_paths(root, "check-ignore", "-v", "--stdin", given=paths)) if paths else iter(())
    for source, _, pattern, path in zip(words, words, words, words, strict=False):
        if source in sources and not pattern.startswith("!"):
            yield path
