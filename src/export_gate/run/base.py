"""Read files of another commit, such as the base of a change, without running any of its code."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from export_gate.run.git import git_output
from export_gate.wall.errors import UserError
from export_gate.wall.repository import repository_root

# The first character rules out `-`: git would take such a name for an option.
_REVISION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/@{}^~-]{0,199}")
SHOWN_SHA = 10
FETCH = (
    "In a workflow, set `fetch-depth: 0` for actions/checkout to get the base commit; elsewhere, fetch it, "
    "or omit --base to use the lock in the working tree."
)


class UnreadableError(Exception):
    """The base is not a commit here, or git cannot read its contents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A file to read at a commit."""

    path: Path
    noun: str
    """What it is, for messages."""
    largest_bytes: int
    hint: str = ""


def find_commit(base: str, folder: Path, environment: Mapping[str, str]) -> str:
    """The full name of the commit `base`.

    Raises:
        UserError: it cannot be the name of a commit.
        UnreadableError: there is no such commit here.
    """
    if not _REVISION.fullmatch(base):
        raise UserError(f"--base: expected a commit, got {base!r:.80}")
    answer = git_output(folder, "rev-parse", "--verify", "--quiet", f"{base}^{{commit}}", environment=environment)
    if answer is None:
        raise UnreadableError(_missing(base, folder, environment))
    return answer.decode("ascii", "replace").strip()


def _missing(base: str, folder: Path, environment: Mapping[str, str]) -> str:
    shown = base[:SHOWN_SHA] if re.fullmatch("[0-9a-f]{40}", base) else base
    inside = git_output(folder, "rev-parse", "--is-shallow-repository", environment=environment)
    if inside is None:
        return f"the base {shown} cannot be read: git finds no repository at {folder}"
    shallow = " of this clone, which is shallow" if inside.strip() == b"true" else " of this repository"
    return f"the base {shown} is not a commit{shallow}"


def root_of(path: Path) -> Path:
    """The checkout that a file is in, by the path as it is written; without one, the nearest folder that exists."""
    root = repository_root(path.parent)
    return root if root.is_dir() else next(up for up in path.parents if up.is_dir())


def file_at(commit: str, wanted: Wanted, environment: Mapping[str, str]) -> bytes | None:
    """The file's bytes at that commit; None if it does not exist there.

    Raises:
        UserError: it is not a regular file, or too large.
        UnreadableError: git cannot list the commit's files.
    """
    path = wanted.path
    # From the root, by the path as it is written: folders of the base may be gone, or links to others by now.
    folder = root_of(path)
    entry = git_output(
        folder, "ls-tree", "-z", commit, "--", path.relative_to(folder).as_posix(), environment=environment
    )
    if entry is None:
        raise UnreadableError(f"git cannot list the files of the base {commit[:SHOWN_SHA]}")
    if not entry:
        return None
    at = f"{path.name} at {commit[:SHOWN_SHA]}"
    # `<mode> <kind> <sha>\t<path>`; mode 120000 is a symbolic link, whose content is a path that nothing should follow.
    mode, kind, sha = entry.split(b"\t")[0].decode("ascii", "replace").split(" ")
    if kind != "blob" or not mode.startswith("100"):
        raise UserError(f"{at}: expected a file, got a {'link' if mode == '120000' else 'folder'}", wanted.hint)
    # Ask before reading: all that git prints is kept in memory.
    size = git_output(folder, "cat-file", "-s", sha, environment=environment)
    if size is not None and int(size) > wanted.largest_bytes:
        raise UserError(
            f"{at}: expected a {wanted.noun} of at most {wanted.largest_bytes} bytes, got {int(size)}", wanted.hint
        )
    content = git_output(folder, "cat-file", "blob", sha, environment=environment)
    if content is None:
        raise UserError(f"{at}: git cannot read it, although the commit contains it", FETCH)
    return content
