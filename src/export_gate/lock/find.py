"""Find the lock to compare with: the working tree's, or the base commit's, which the change cannot edit."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from export_gate.config import Config
from export_gate.lock.file import HINT, LARGEST_BYTES, lock_path, parse_lock, read_lock
from export_gate.loosening.compare import arrow
from export_gate.loosening.record import CONFIG, Alteration, ConfigChange
from export_gate.rules.lock.difference import differences
from export_gate.rules.lock.facts import UNKNOWN
from export_gate.rules.lock.margin_shrunk import FLOOR, GROWTH
from export_gate.rules.lock.record import Lock, LockedModel, LockedTarget, LockedTensor, LockUsed, Margin
from export_gate.run.base import FETCH, SHOWN_SHA, Base, Wanted, file_at, find_commit
from export_gate.run.change import base_of
from export_gate.run.git import UnreadableError
from export_gate.run.moved import moved_from
from export_gate.wall.contract import ModelContract
from export_gate.wall.equivalence import ratio
from export_gate.wall.errors import UserError
from export_gate.wall.repository import repository_root

LARGER = 1.5
"""How many times larger an artifact of the lock must have become to be said; new versions of a converter add little."""


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


def find_lock(config: Config, base: str | None, environment: Mapping[str, str]) -> Found:
    """Find the lock next to the config, or at commit `base`.

    Args:
        config: whose lock.
        base: a commit; None or empty means the working tree.
        environment: for git.

    Raises:
        UserError: the file is not a lock, or the base cannot be read although there is a lock.
    """
    folder, path = config.place.parent, lock_path(config.place)
    # Needed even with a base: it shows which models the change has removed from the lock.
    here = read_lock(path, repository_root(folder))
    if not base:
        said = tuple(_unlocked_since(config, here, environment))
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
        return Found(lock=used, alterations=tuple(_unlocked(lock, here, config, path.name)))
    if here is None:
        return Found()
    return Found(lock=LockUsed(origin=f"{shown}, which has no {path.name}", is_base=True))


def _unlocked_since(config: Config, here: Lock | None, environment: Mapping[str, str]) -> Iterator[Alteration]:
    """Before a push: what the lock, which counts, does not hold any more of what the remote has."""
    since, path = base_of(None, environment), lock_path(config.place)
    # The change as a whole says that the remote's commit cannot be read.
    with suppress(UserError, UnreadableError):
        if since is not None:
            place, content = _past_content(find_commit(since, path.parent, environment), config, path, environment)
            if content is not None:
                yield from _unlocked(parse_lock(content, place.name), here, config, path.name)


def _past_content(base: Base, config: Config, path: Path, environment: Mapping[str, str]) -> tuple[Path, bytes | None]:
    """The lock's bytes at the base, and its place: that of the config before the change moved it."""
    content = file_at(base, _wanted(path), environment)
    # Only if there is none at the usual place: a move costs several calls of git to find.
    old = None if content is not None else moved_from(config, base, environment)
    return (path, content) if old is None else (lock_path(old), file_at(base, _wanted(lock_path(old)), environment))


def _wanted(path: Path) -> Wanted:
    return Wanted(path=path, noun="lock", largest_bytes=LARGEST_BYTES, hint=HINT)


def _unlocked(before: Lock, now: Lock | None, config: Config, name: str) -> Iterator[Alteration]:
    """What the change's own lock says otherwise of models that the config still has. Others are reported as gone."""
    if now is None:
        what = f"{name} is removed, so that no interface is compared after the merge"
        yield Alteration(effect="loosened", model=CONFIG, what=what)
        return
    for contract in config.models:
        old, new = before.models.get(contract.name), now.models.get(contract.name)
        if old is not None:
            said = ["removed from the interface lock"] if new is None else _said(old, new, contract)
            yield from (Alteration(effect="loosened", model=contract.name, what=what) for what in said)


def _said(before: LockedModel, now: LockedModel, contract: ModelContract) -> Iterator[str]:
    """What the change's lock says otherwise, so that the next change is compared with less."""
    named = {target.name for target in contract.targets}
    if gone := [
        *_emptied(before, now),
        *(d.name for d in contract.dims if d.name in before.dims and d.name not in now.dims),
        *_vaguer((*before.inputs, *before.outputs), (*now.inputs, *now.outputs)),
    ]:
        yield f"in the interface lock, the model: no {', '.join(gone)} any more"
    for each in differences(before, now):
        if each.breaks and (each.target is None or each.target in named):
            yield f"in the interface lock, {each.target or 'the model'}: {each.what}"
    for name in (name for name in named if name in before.targets and name in now.targets):
        old, new = before.targets[name], now.targets[name]
        if gone := list(_emptied(old, new)):
            yield f"in the interface lock, {name}: no {', '.join(gone)} any more"
        for key in (key for key in old.sizes if new.sizes.get(key, 0) > LARGER * old.sizes[key]):
            yield f"in the interface lock, {name}: {key} {arrow(old.sizes[key], new.sizes[key])} bytes"
        for key in (key for key in old.margins if key in new.margins and _is_wider(old.margins[key], new.margins[key])):
            worst = arrow(old.margins[key].measured, new.margins[key].measured)
            yield f"in the interface lock, {name}: worst error of {key} {worst}"


def _emptied(before: LockedModel | LockedTarget, now: LockedModel | LockedTarget) -> Iterator[str]:
    """Fields without any entry, with which nothing can be compared."""
    for field in dataclasses.fields(before):
        if getattr(before, field.name) and not getattr(now, field.name):
            yield field.name.replace("_", " ")

    if isinstance(before, LockedTarget) and isinstance(now, LockedTarget):
        for name, old, new in (("size", before.sizes, now.sizes), ("margin", before.margins, now.margins)):
            # Without any, it is said above; nothing has grown in comparison with 0 bytes.
            yield from (f"{name} of {key}" for key in old if new and not new.get(key))


def _vaguer(before: Sequence[LockedTensor], now: Sequence[LockedTensor]) -> Iterator[str]:
    """What is not known of a tensor any more, with which nothing can be compared either."""
    known = {tensor.name: tensor for tensor in now}
    for old in before:
        new = known.get(old.name, old)
        if old.range and not new.range:
            yield f"range of {old.name}"
        if any(axis == UNKNOWN != was for was, axis in zip(old.shape, new.shape, strict=False)):
            yield f"shape of {old.name}"


def _is_wider(before: Margin, now: Margin) -> bool:
    # Of the smaller bound: a larger one would make any error a small share of it.
    allowed = min(now.allowed, before.allowed)
    return now.measured >= GROWTH * before.measured and ratio(now.measured, allowed) >= FLOOR


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
