"""Read files of another commit, such as the base of a change, without running any of its code."""

from __future__ import annotations

import os.path
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from export_gate.run.git import UnreadableError, git_output, is_distrusted
from export_gate.wall.errors import UserError
from export_gate.wall.repository import repository_root

_FULL = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
# The first character rules out `-`: git would take such a name for an option.
_REVISION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/@{}^~-]{0,199}")
SHOWN_SHA = 10
FETCH = (
    "In a workflow, set `fetch-depth: 0` for actions/checkout to get the base commit; elsewhere, fetch it, "
    "or omit --base to use the lock in the working tree."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A file to read at a commit."""

    path: Path
    noun: str
    """What it is, for messages."""
    largest_bytes: int
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """A commit to compare with."""

    commit: str
    root: Path
    """The checkout that has it, by its path as it is written; the config may be in a submodule of it."""


def find_commit(base: str, folder: Path, environment: Mapping[str, str]) -> Base:
    """The commit `base`, by its full name.

    Raises:
        UserError: it cannot be the name of a commit, or is that of several.
        UnreadableError: there is no such commit here.
    """
    if not _REVISION.fullmatch(base):
        raise UserError(f"--base: expected a commit, got {base!r:.80}")
    for root in _checkouts(base, folder):
        _require_one(base, root, environment)
        answer = git_output(root, "rev-parse", "--verify", "--quiet", f"{base}^{{commit}}", environment=environment)
        if answer is not None:
            return Base(commit=answer.decode("ascii", "replace").strip(), root=root)
    raise UnreadableError(_missing(base, folder, environment))


def _require_one(base: str, root: Path, environment: Mapping[str, str]) -> None:
    """Check that the name is not that of a branch and of a tag: git takes the tag, which anybody may have pushed.

    Raises:
        UserError: it is the name of several.
    """
    if _FULL.fullmatch(base):
        return
    name = re.split(r"[@^~]", base)[0]
    names = [f"refs/{kind}{name}" for kind in ("", "tags/", "heads/", "remotes/")]
    asked = ("for-each-ref", "--format=%(refname)", *names)
    answer = git_output(root, *asked, environment=environment) or b""
    # A pattern also stands for what is below a folder of that name.
    found = [each for each in answer.decode("utf-8", "replace").splitlines() if each in names]
    if len(found) > 1:
        raise UserError(f"--base: expected the name of one commit, got that of {' and '.join(found)}: {base:.80}")


def _checkouts(base: str, folder: Path) -> list[Path]:
    """The checkouts around the folder, in the order in which they are searched.

    The folder may be in a submodule, or in any other repository inside the one whose change is verified. A digest names
    the same commit in each of them, and the outermost one has the workflows. A branch is one of where the command runs.
    """
    around = [up for up in (folder, *folder.parents) if os.path.lexists(up / ".git")]
    if _FULL.fullmatch(base):
        around.reverse()
    else:
        here = repository_root(Path.cwd())
        around.sort(key=lambda up: up != here)
    return around or [folder]


def _missing(base: str, folder: Path, environment: Mapping[str, str]) -> str:
    shown = base[:SHOWN_SHA] if _FULL.fullmatch(base) else base
    inside = git_output(folder, "rev-parse", "--is-shallow-repository", environment=environment)
    if inside is None and is_distrusted(folder, environment):
        command = f"git config --global --add safe.directory {repository_root(folder)}"
        return f"the base {shown} cannot be read: another user owns the checkout; run `{command}` in an earlier step"
    if inside is None:
        return f"the base {shown} cannot be read: git finds no repository at {folder}"
    shallow = " of this clone, which is shallow" if inside.strip() == b"true" else " of this repository"
    return f"the base {shown} is not a commit{shallow}"


def within(base: Base, path: Path, environment: Mapping[str, str]) -> Base:
    """The base of a path: the commit of the submodule that the path was in at the base, else `base` itself.

    Raises:
        UnreadableError: the submodule's commit is not here.
    """
    # Only folders above the path are asked, the outermost first: who asks about a checkout itself names its `.git`.
    for folder in reversed(path.relative_to(base.root).parents):
        sha = submodule_at(base, base.root / folder, environment)
        if sha:
            return within(_inner(base, base.root / folder, sha, environment), path, environment)
    return base


def submodule_at(base: Base, folder: Path, environment: Mapping[str, str]) -> str:
    """The commit of the submodule that the folder was at the base; empty if it was none."""
    name = folder.relative_to(base.root).as_posix()
    entry = b"" if name == "." else _entry(base, name, environment) or b""
    mode, _, sha = entry.split(b"\t")[0].decode("ascii", "replace").partition(" commit ")
    return sha if mode == "160000" else ""


def _inner(base: Base, folder: Path, sha: str, environment: Mapping[str, str]) -> Base:
    # Without its own `.git`, git would answer for the outer repository.
    is_here = os.path.lexists(folder / ".git")
    if not is_here or git_output(folder, "cat-file", "-e", f"{sha}^{{commit}}", environment=environment) is None:
        name = folder.relative_to(base.root).as_posix()
        raise UnreadableError(
            f"the base {base.commit[:SHOWN_SHA]} has the submodule {name} at {sha[:SHOWN_SHA]}, which is not here"
        )
    return Base(commit=sha, root=folder)


def _entry(base: Base, name: str, environment: Mapping[str, str]) -> bytes | None:
    # From the root, by the path as it is written: folders of the base may be gone, or links to others by now.
    return git_output(base.root, "ls-tree", "-z", base.commit, "--", name, environment=environment)


def file_at(base: Base, wanted: Wanted, environment: Mapping[str, str]) -> bytes | None:
    """The file's bytes at that commit; None if it does not exist there.

    Raises:
        UserError: it is not a regular file, or too large.
        UnreadableError: git cannot list the commit's files.
    """
    path = wanted.path
    entry = _entry(base, path.relative_to(base.root).as_posix(), environment)
    if entry is None:
        raise UnreadableError(f"git cannot list the files of the base {base.commit[:SHOWN_SHA]}")
    if not entry:
        inner = within(base, path, environment)
        return None if inner == base else file_at(inner, wanted, environment)
    at = f"{path.name} at {base.commit[:SHOWN_SHA]}"
    # `<mode> <kind> <sha>\t<path>`; mode 120000 is a symbolic link, whose content is a path that nothing should follow.
    mode, kind, sha = entry.split(b"\t")[0].decode("ascii", "replace").split(" ")
    if kind != "blob" or not mode.startswith("100"):
        raise UserError(f"{at}: expected a file, got a {'link' if mode == '120000' else 'folder'}", wanted.hint)
    # Ask before reading: all that git prints is kept in memory.
    size = git_output(base.root, "cat-file", "-s", sha, environment=environment)
    if size is not None and int(size) > wanted.largest_bytes:
        raise UserError(
            f"{at}: expected a {wanted.noun} of at most {wanted.largest_bytes} bytes, got {int(size)}", wanted.hint
        )
    content = git_output(base.root, "cat-file", "blob", sha, environment=environment)
    if content is None:
        raise UserError(f"{at}: git cannot read it, although the commit contains it", FETCH)
    return content
