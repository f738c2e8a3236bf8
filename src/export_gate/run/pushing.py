"""Compare what is pushed with what the pre-push hook verifies, which is the working tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from export_gate.run.git import git_line, git_paths

DIFF = ("diff", "--name-only", "--no-relative")
"""From the root of the checkout, whatever the user's settings of git say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Push:
    """One push, as the hook finds it."""

    notes: tuple[str, ...] = ()
    """How what is verified differs from what is pushed."""
    unpushed: dict[str, str] = field(default_factory=dict)
    """What is not pushed as it is, from the root of the checkout -> `untracked` or `not committed`.

    A folder is a repository of its own: a submodule at another commit, or one that was cloned into this.
    """


def find_push(environment: Mapping[str, str], folder: Path) -> Push:
    """The differences between the commit that is pushed and what is verified.

    Args:
        environment: where pre-commit says which commit is pushed; without that there is nothing to say.
        folder: a folder of the repository.
    """
    pushed = _pushed(environment)
    commit = git_line(folder, "rev-parse", f"{pushed}^{{commit}}") if pushed else None
    root = git_line(folder, "rev-parse", "--show-toplevel")
    if not commit or not root:
        return Push(notes=(f"the commit that is pushed was not found: {pushed:.80}",) if pushed else ())
    head = git_line(folder, "rev-parse", "HEAD^{commit}")
    changed, differing = (_differing(Path(root), to) for to in ("HEAD", commit))
    untracked = _untracked(Path(root), "--exclude-standard")
    # What only this machine ignores (info/exclude, core.excludesFile) is missing elsewhere all the same. It is no note,
    # since editors and systems leave much of it; a model that reads it is a violation.
    hidden = _untracked(Path(root), "--exclude-per-directory=.gitignore")
    notes = []
    if head != commit:
        notes.append(
            f"HEAD is not the commit that is pushed: {commit[:10]} is pushed, {(head or 'nothing')[:10]} is checked "
            f"out and verified; check out {commit[:10]} and run `export-gate run`, or leave that commit to the "
            "required check"
        )
    if changed:
        notes.append(f"the check includes uncommitted changes that will not be pushed: {few(changed)}")
    if untracked:
        notes.append(f"the check includes untracked files that will not be pushed: {few(untracked)}")
    return Push(
        notes=tuple(notes),
        unpushed={**dict.fromkeys(differing, "not committed"), **dict.fromkeys((*untracked, *hidden), "untracked")},
    )


def _differing(root: Path, commit: str) -> tuple[str, ...]:
    """Tracked files that differ from the commit, also those whose changes git was told not to look for."""
    # Untracked files in submodules are left to `_untracked`, which names them.
    seen = git_paths(root, *DIFF, "--ignore-submodules=untracked", commit, "--")
    # `ls-files -v` marks skip-worktree with S and assume-unchanged with a lower-case letter; `git diff` skips both.
    flagged = (entry[2:] for entry in git_paths(root, "ls-files", "-v") if entry[0] == "S" or entry[0].islower())
    unseen = (path for path in flagged if (root / path).is_file() and path not in seen)
    return (
        *seen,
        *(
            path
            for path in unseen
            # hash-object applies the filters of `git add`, so line endings alone are not a difference.
            if git_line(root, "hash-object", path) != git_line(root, "rev-parse", f"{commit}:{path}")
        ),
    )


def _untracked(root: Path, ignoring: str) -> tuple[str, ...]:
    """Files that are neither tracked nor ignored, also those in submodules; a repository in this one is one folder."""
    own = git_paths(root, "ls-files", "--others", ignoring)
    inner = (entry.partition("\t") for entry in git_paths(root, "ls-files", "--stage"))
    submodules = [path for mode, _, path in inner if mode.startswith("160000 ") and (root / path / ".git").exists()]
    theirs = (f"{path}/{name}" for path in submodules for name in _untracked(root / path, ignoring))
    return (*(path.rstrip("/") for path in own), *theirs)


def _pushed(environment: Mapping[str, str]) -> str | None:
    # A push that includes the first commit of the repository has no range, only the name of what is pushed.
    return environment.get("PRE_COMMIT_TO_REF") or environment.get("PRE_COMMIT_LOCAL_BRANCH")


def few(paths: Sequence[str]) -> str:
    """The first path, and how many more there are."""
    return paths[0] + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")
