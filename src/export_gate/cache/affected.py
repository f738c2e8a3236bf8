"""Say which models a change can touch, and why: those whose kept verdict does not hold, and those without one."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from export_gate.cache.compare import Difference, differences
from export_gate.cache.contracts import contract_digest
from export_gate.cache.entry import Entry
from export_gate.cache.recall import holding
from export_gate.cache.scene import Scene
from export_gate.run.base import FETCH, find_commit, within
from export_gate.run.git import UnreadableError, git_paths
from export_gate.run.pushing import DIFF, few
from export_gate.wall.contract import Job
from export_gate.wall.errors import UserError
from export_gate.wall.repository import repository_root
from export_gate.wall.words import unchanged_words


@dataclass(frozen=True, slots=True, kw_only=True)
class Affected:
    """One model of the plan."""

    model: str
    runs: bool
    why: str


def changed_since(ref: str, folder: Path, environment: Mapping[str, str]) -> frozenset[str]:
    """The files that differ between the commit and the working tree, from the root of the checkout.

    Raises:
        UserError: it is not a commit here.
    """
    try:
        base = within(find_commit(ref, folder, environment), repository_root(folder) / ".git", environment)
        changed = git_paths(base.root, *DIFF, "--no-renames", base.commit, "--")
        return frozenset((*changed, *git_paths(base.root, "ls-files", "--others", "--exclude-standard")))
    except UnreadableError as error:
        raise UserError(f"--changed-since {ref:.80}: {error}", FETCH) from error


def affected(scene: Scene, jobs: Sequence[Job], changed: Collection[str], ref: str) -> tuple[Affected, ...]:
    """Each model: what is not known to be unchanged runs."""
    return tuple(_affected(scene, job, changed, ref) for job in jobs)


def _affected(scene: Scene, job: Job, changed: Collection[str], ref: str) -> Affected:
    name = job.contract.name
    if not job.contract.cache:
        return Affected(model=name, runs=True, why="`cache: false`")
    found = holding(scene, job)
    if found is not None:
        return Affected(model=name, runs=False, why=unchanged_words(found[1].commit, found[1].day))
    entries = [entry for _, entry in scene.folder.entries(scene.key(name))]
    digest = contract_digest(job, scene.present)
    same = [entry for entry in entries if entry.contract == digest]
    if not same:
        why = "its part of the config changed" if entries else "no kept verdict says what it depends on"
        return Affected(model=name, runs=True, why=why)
    return Affected(model=name, runs=True, why=_why(scene, same[0], changed, ref))


def _why(scene: Scene, entry: Entry, changed: Collection[str], ref: str) -> str:
    """What differs from the last verification: first what the change touches."""
    found = list(differences(entry, scene.now(entry.env)))
    # An entry may be older than COMMIT, and then differs in more than the change.
    touched = [each for each in found if _is_touched(each, changed)]
    others = [each for each in found if each not in touched]
    parts = [f"{few([each.words for each in touched])} changed since {ref}"] if touched else []
    if others:
        parts.append(f"{few([each.words for each in others])} changed since its verification on {entry.day}")
    return "; ".join(parts)


def _is_touched(difference: Difference, changed: Collection[str]) -> bool:
    """Whether the change has the file, one in the folder, or the submodule that it is in."""
    path = difference.path
    inside = "" if path == "." else f"{path}/"
    if not path or os.path.isabs(path):  # noqa: PTH117
        return False
    return any(each == path or each.startswith(inside) or path.startswith(f"{each}/") for each in changed)
