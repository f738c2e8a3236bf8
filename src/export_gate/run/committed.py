"""Interpreters that are files of the repository: a change can replace them, and with them whatever they would say."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from export_gate.config import Config
from export_gate.loosening.record import CONFIG, Alteration
from export_gate.run.base import Base, within
from export_gate.run.git import UnreadableError, git_paths
from export_gate.run.interpreter import PYTHON_NAMES, find_interpreter, with_environment
from export_gate.run.pushing import DIFF, VERSIONS, few
from export_gate.wall.errors import UserError
from export_gate.wall.repository import in_repository

ENVIRONMENT = ".venv"


def interpreter_alterations(
    config: Config, base: Base, environment: Mapping[str, str], python: str | None
) -> tuple[Alteration, ...]:
    """One alteration where the change touches files of an interpreter that the gate may choose.

    Args:
        config: whose folder may have an environment, as may those above it.
        base: the commit.
        environment: for git, and for the interpreter that it names.
        python: the interpreter that the caller names.
    """
    folder = config.place.parent
    named = ((python, Path.cwd()), (environment.get("EXPORT_GATE_PYTHON"), Path.cwd()), (config.python, folder))
    places = [place for text, at in named if text for place in with_environment(Path(os.path.normpath(at / text)))]
    inside = [up for up in (folder, *folder.parents) if up == base.root or base.root in up.parents]
    places += [up / name for up in inside for name in (ENVIRONMENT, *VERSIONS)]
    with suppress(UserError):  # of one that is not there, the run itself says so
        # Also one of VIRTUAL_ENV or PATH, which may name folders of the checkout.
        chosen = find_interpreter(python, config.python, folder, environment).path
        places += with_environment(Path(os.path.abspath(chosen)))  # noqa: PTH100 - resolve() would leave a link
    places += [real for place in places for real in _real(place, base.root)]
    changed = tuple(changed_below(base, sorted({p for p in places if base.root in p.parents}), environment))
    if not changed:
        return ()
    what = f"the interpreter that runs the check is the change's own: {few(changed)} is not as at the base"
    return (Alteration(effect="loosened", model=CONFIG, what=what),)


def _real(place: Path, root: Path) -> Iterator[Path]:
    """Where links of the place lead to in the checkout: the interpreter, or that of an environment."""
    for python in (place, *(place / folder / name for folder in ("bin", "Scripts") for name in PYTHON_NAMES)):
        real = python.resolve()
        if real != python and root.resolve() in real.parents:
            yield from with_environment(root / real.relative_to(root.resolve()))


def changed_below(base: Base, places: Sequence[Path], environment: Mapping[str, str]) -> Iterator[str]:
    """Tracked files of these places, which are in the checkout or a submodule, that are not as at the base."""
    found: dict[Path, list[str]] = {}
    for root, name in map(in_repository, places):
        found.setdefault(root, []).append(name)
    for root, names in found.items():
        yield from _changed(base, root, names, environment)


def _changed(base: Base, root: Path, names: Sequence[str], environment: Mapping[str, str]) -> Iterator[str]:
    """Tracked files of one checkout, below these paths of it, that are not as at the base."""
    literal = [f":(top,literal){name}" for name in names]
    asked: tuple[str, ...] = ("ls-files",)  # what the base cannot be asked about is the change's own
    with suppress(UnreadableError):
        own = within(base, root / ".git", environment)
        if own.root == root:
            asked = (*DIFF, "--no-renames", "--ignore-submodules=none", own.commit)
    for name in git_paths(root, *asked, "--", *literal, environment=environment):
        yield (root / name).relative_to(base.root).as_posix()
