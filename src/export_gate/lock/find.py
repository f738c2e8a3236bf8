"""Find the lock to compare with: the working tree's, or the base commit's, which the change cannot edit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from export_gate.config import Config
from export_gate.lock.file import HINT, LARGEST_BYTES, lock_path, parse_lock, read_lock
from export_gate.lock.lost import unlocked
from export_gate.loosening.record import Alteration, ConfigChange
from export_gate.rules.lock.record import Lock, LockUsed
from export_gate.run.base import FETCH, SHOWN_SHA, Base, Wanted, file_at, find_commit
from export_gate.run.change import base_of
from export_gate.run.git import UnreadableError
from export_gate.run.moved import moved_from
from export_gate.wall.errors import UserError
from export_gate.wall.repository import repository_root


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The lock, if there is one, and a note if it could not be searched for."""

    lock: LockUsed | None = None
    note: str = ""
    alterations: tuple[Alteration, ...] = ()
    """What the change's own lock does not hold any more, so that the next change is compared with less."""

    def said_with(self, change: ConfigChange | None) -> ConfigChange | None:
        """What the change does to the config and to the lock."""
        return replace(change, alterations=(*self.alterations, *change.alterations)) if change else None


def find_lock(config: Config, base: str | None, environment: Mapping[str, str], past: Config | None = None) -> Found:
    """Find the lock next to the config, or at commit `base`.

    Args:
        config: whose lock.
        base: a commit; None or empty means the working tree.
        environment: for git.
        past: the config at the base of the change; None if it is as now.

    Raises:
        UserError: the file is not a lock, or the base cannot be read although there is a lock.
    """
    folder, path, past = config.place.parent, lock_path(config.place), past or config
    # Needed even with a base: it shows which models the change has removed from the lock.
    here = read_lock(path, repository_root(folder))
    if not base:
        said = tuple(_unlocked_since(past, config, here, environment))
        used = None if here is None else _used(here, config, origin=path.name, here=here)
        return Found(lock=used, alterations=said)
    try:
        found = find_commit(base, folder, environment)
        place, content = _past_content(found, config, path, environment)
    except UnreadableError as error:
        if here is None:
            return Found(note=f"{error}; the working tree has no lock, so the base was not searched for one")
        raise UserError(f"{path.name}: {error}", FETCH) from error
    shown = found.commit[:SHOWN_SHA]
    at = f"{place.name} at {shown}"
    if content is not None:
        lock = parse_lock(content, at)
        used = _used(lock, config, origin=at, here=here, is_base=True)
        return Found(lock=used, alterations=tuple(unlocked(lock, here, past, config)))
    if here is None:
        return Found()
    return Found(lock=LockUsed(origin=f"{shown}, which has no {path.name}", is_base=True))


def _unlocked_since(
    past: Config, config: Config, here: Lock | None, environment: Mapping[str, str]
) -> Iterator[Alteration]:
    """Before a push: what the lock, which counts, does not hold any more of what the remote has."""
    since, path = base_of(None, environment), lock_path(config.place)
    # The change as a whole says that the remote's commit cannot be read.
    with suppress(UserError, UnreadableError):
        if since is not None:
            place, content = _past_content(find_commit(since, path.parent, environment), config, path, environment)
            if content is not None:
                yield from unlocked(parse_lock(content, place.name), here, past, config)


def _past_content(base: Base, config: Config, path: Path, environment: Mapping[str, str]) -> tuple[Path, bytes | None]:
    """The lock's bytes at the base, and its place: that of the config before the change moved it."""
    content = file_at(base, _wanted(path), environment)
    # Only if there is none at the usual place: a move costs several calls of git to find.
    old = None if content is not None else moved_from(config, base, environment)
    return (path, content) if old is None else (lock_path(old), file_at(base, _wanted(lock_path(old)), environment))


def _wanted(path: Path) -> Wanted:
    return Wanted(path=path, noun="lock", largest_bytes=LARGEST_BYTES, hint=HINT)


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
