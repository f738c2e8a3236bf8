"""Interpreters that are files of the repository: a change can replace them, and with them whatever they would say."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from export_gate.config import Config
from export_gate.loosening.record import CONFIG, Alteration
from export_gate.run.git import git_paths
from export_gate.run.interpreter import with_environment
from export_gate.run.pushing import DIFF, few
from export_gate.wall.repository import repository_root

ENVIRONMENT = ".venv"


def interpreter_alterations(
    config: Config, commit: str, environment: Mapping[str, str], python: str | None
) -> tuple[Alteration, ...]:
    """One alteration where the change touches files of an interpreter that the gate may choose.

    Args:
        config: whose folder may have an environment, as may those above it.
        commit: the base.
        environment: for git, and for the interpreter that it names.
        python: the interpreter that the caller names.
    """
    folder = Path(os.path.abspath(config.path)).parent  # noqa: PTH100 - as load_config names it
    root = repository_root(folder)
    named = ((python, Path.cwd()), (environment.get("EXPORT_GATE_PYTHON"), Path.cwd()), (config.python, folder))
    places = [place for text, base in named if text for place in with_environment(Path(os.path.normpath(base / text)))]
    places += [up / ENVIRONMENT for up in (folder, *folder.parents) if up == root or root in up.parents]
    inside = sorted({place.relative_to(root).as_posix() for place in places if root in place.parents})
    if not inside:
        return ()
    literal = (f":(top,literal){place}" for place in inside)
    changed = git_paths(
        root, *DIFF, "--no-renames", "--ignore-submodules=none", commit, "--", *literal, environment=environment
    )
    if not changed:
        return ()
    what = f"the interpreter that runs the check is the change's own: {few(changed)} is not as at the base"
    return (Alteration(effect="loosened", model=CONFIG, what=what),)
