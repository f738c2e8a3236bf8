"""Find the lock to compare with: the working tree's, or the base commit's, which the change cannot edit."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from export_gate.config import Config
from export_gate.config.paths import repository_root
from export_gate.lock.file import HINT, LARGEST_BYTES, lock_path, parse_lock, read_lock
from export_gate.rules.lock.record import Lock, LockUsed
from export_gate.wall.errors import UserError

GIT_S = 60.0
"""Time limit of one git command, in seconds."""
_REVISION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/@{}^~-]{0,199}")
SHOWN_SHA = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The lock, if there is one, and a note if it could not be searched for."""

    lock: LockUsed | None = None
    note: str = ""


def find_lock(config: Config, base: str | None, environment: Mapping[str, str]) -> Found:
    """Find the lock next to the config, or at commit `base`.

    Args:
        config: whose lock.
        base: a commit; None or empty means the working tree.
        environment: for git.

    Raises:
        UserError: the file is not a lock, or the base cannot be read although there is a lock.
    """
    folder = Path(os.path.abspath(config.path)).parent  # noqa: PTH100 - as load_config names it
    path = lock_path(Path(os.path.abspath(config.path)))  # noqa: PTH100
    here = read_lock(path, repository_root(folder))
    if not base:
        return Found() if here is None else Found(lock=_used(here, config, origin=path.name, here=here))
    try:
        commit = _commit(base, folder, environment)
        content = _content(commit, path, folder, environment)
    except _UnreadableError as error:
        if here is None:
            return Found(note=f"{error}; the working tree has no lock, so the base was not searched for one")
        raise UserError(f"{path.name}: {error}", FETCH) from error
    at = f"{path.name} at {commit[:SHOWN_SHA]}"
    if content is not None:
        return Found(lock=_used(parse_lock(content, at), config, origin=at, here=here, is_base=True))
    if here is None:
        return Found()
    return Found(lock=LockUsed(origin=f"{commit[:SHOWN_SHA]}, which has no {path.name}", is_base=True))


class _UnreadableError(Exception):
    """The base is not a commit here, or git cannot read its contents."""


FETCH = (
    "In a workflow, set `fetch-depth: 0` for actions/checkout to get the base commit; elsewhere, fetch it, "
    "or omit --lock-base to use the lock in the working tree."
)


def _used(lock: Lock, config: Config, *, origin: str, here: Lock | None, is_base: bool = False) -> LockUsed:
    named = {contract.name for contract in config.models}
    gone = tuple(sorted(name for name in lock.models if name not in named))
    kept = here.models if here else {}
    return LockUsed(
        origin=origin,
        is_base=is_base,
        models=lock.models,
        gone=gone,
        dropped=tuple(name for name in gone if name not in kept) if is_base else (),
    )


def _commit(base: str, folder: Path, environment: Mapping[str, str]) -> str:
    if not _REVISION.fullmatch(base):
        raise UserError(f"--lock-base: expected a commit, got {base!r:.80}")
    answer = _git(folder, environment, "rev-parse", "--verify", "--quiet", f"{base}^{{commit}}")
    if answer is None:
        raise _UnreadableError(_missing(base, folder, environment))
    return answer.decode("ascii", "replace").strip()


def _missing(base: str, folder: Path, environment: Mapping[str, str]) -> str:
    shown = base[:SHOWN_SHA] if re.fullmatch("[0-9a-f]{40}", base) else base
    inside = _git(folder, environment, "rev-parse", "--is-shallow-repository")
    if inside is None:
        return f"the base {shown} cannot be read: git finds no repository at {folder}"
    shallow = " of this clone, which is shallow" if inside.strip() == b"true" else " of this repository"
    return f"the base {shown} is not a commit{shallow}"


def _content(commit: str, path: Path, folder: Path, environment: Mapping[str, str]) -> bytes | None:
    """The file's bytes at that commit; None if it does not exist there."""
    entry = _git(folder, environment, "ls-tree", "-z", commit, "--", path.name)
    if entry is None:
        raise _UnreadableError(f"git cannot list the files of the base {commit[:SHOWN_SHA]}")
    if not entry:
        return None
    at = f"{path.name} at {commit[:SHOWN_SHA]}"
    mode, kind, sha = entry.split(b"\t")[0].decode("ascii", "replace").split(" ")
    if kind != "blob" or not mode.startswith("100"):
        raise UserError(f"{at}: expected a file, got a {'link' if mode == '120000' else 'folder'}", HINT)
    size = _git(folder, environment, "cat-file", "-s", sha)
    if size is not None and int(size) > LARGEST_BYTES:
        raise UserError(f"{at}: expected a lock of at most {LARGEST_BYTES} bytes, got {int(size)}", HINT)
    content = _git(folder, environment, "cat-file", "blob", sha)
    if content is None:
        raise UserError(f"{at}: git cannot read it, although the commit contains it", FETCH)
    return content


def _git(folder: Path, environment: Mapping[str, str], *arguments: str) -> bytes | None:
    """The output of git, or None if it fails; git never prompts for a password."""
    try:
        answer = subprocess.run(
            ["git", "--no-replace-objects", *arguments],
            cwd=folder,
            env={**environment, "GIT_TERMINAL_PROMPT": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_S,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return answer.stdout if answer.returncode == 0 else None
