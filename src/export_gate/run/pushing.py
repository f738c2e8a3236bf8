"""Compare what is pushed with what the pre-push hook verifies, which is the working tree."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from export_gate.config import Config
from export_gate.run.git import git_line, git_paths


@dataclass(frozen=True, slots=True, kw_only=True)
class Push:
    """One push, as the hook finds it."""

    notes: tuple[str, ...] = ()
    """How what is verified differs from what is pushed."""
    unpushed: dict[str, str] = field(default_factory=dict)
    """Files that are not pushed as they are, from the root of the checkout -> `untracked` or `not committed`."""


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
    changed = git_paths(Path(root), "diff", "--name-only", "HEAD", "--")
    differing = git_paths(Path(root), "diff", "--name-only", commit, "--")
    untracked = git_paths(Path(root), "ls-files", "--others", "--exclude-standard")
    notes = []
    if head != commit:
        notes.append(
            f"HEAD is not the commit that is pushed: {commit[:10]} is pushed, {(head or 'nothing')[:10]} is checked "
            f"out and verified; check out {commit[:10]} and run `export-gate run`, or leave that commit to the "
            "required check"
        )
    if changed:
        notes.append(f"the check includes uncommitted changes that will not be pushed: {_few(changed)}")
    if untracked:
        notes.append(f"the check includes untracked files that will not be pushed: {_few(untracked)}")
    return Push(
        notes=tuple(notes),
        unpushed={**dict.fromkeys(differing, "not committed"), **dict.fromkeys(untracked, "untracked")},
    )


def nothing_to_verify(config: Config, environment: Mapping[str, str]) -> str | None:
    """Why a push cannot change a verdict: it changes only files of `ignore`; None if it may, or if this is no push.

    The config and its lock decide what is checked, so no pattern covers them.
    """
    folder = config.path.resolve().parent
    start, end = environment.get("PRE_COMMIT_FROM_REF"), environment.get("PRE_COMMIT_TO_REF")
    if not (config.ignore and start and end):
        return None
    changed = git_paths(folder, "diff", "--name-only", "--no-renames", f"{start}^{{commit}}", f"{end}^{{commit}}")
    if not changed or not all(_is_ignored(path, config) for path in changed):
        return None
    return f"nothing to verify: the push changes only files of `ignore`: {_few(changed)}"


def _is_ignored(path: str, config: Config) -> bool:
    own = {config.path.name, config.path.with_suffix(".lock").name}
    return path.rpartition("/")[2] not in own and any(_matches(pattern, path) for pattern in config.ignore)


def _matches(pattern: str, path: str) -> bool:
    """`**` is any number of folders, `*` and `?` stay within one; a pattern without a slash is of the file's name."""
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    regex = "".join(
        {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(part, re.escape(part)) for part in parts
    )
    return re.fullmatch(regex, path if "/" in pattern or "**" in pattern else path.rpartition("/")[2]) is not None


def _pushed(environment: Mapping[str, str]) -> str | None:
    # A push that includes the first commit of the repository has no range, only the name of what is pushed.
    return environment.get("PRE_COMMIT_TO_REF") or environment.get("PRE_COMMIT_LOCAL_BRANCH")


def _few(paths: Sequence[str]) -> str:
    return paths[0] + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")
