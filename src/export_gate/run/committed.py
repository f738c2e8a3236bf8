"""Interpreters that are files of the repository: a change can replace them, and with them whatever they would say."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from export_gate.config import Config
from export_gate.loosening.record import CONFIG, Alteration
from export_gate.run.git import git_output
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
    places = [place for text, base in named if text for place in _parts(Path(os.path.normpath(base / text)))]
    places += [up / ENVIRONMENT for up in (folder, *folder.parents) if up == root or root in up.parents]
    inside = sorted({place.relative_to(root).as_posix() for place in places if root in place.parents})
    asked = (
        "diff",
        "--name-only",
        "--no-relative",
        "--no-renames",
        "--ignore-submodules=none",
        "-z",
        commit,
        "--",
        *(f":(top,literal){p}" for p in inside),
    )
    listed = git_output(root, *asked, environment=environment) if inside else None
    changed = [name for name in os.fsdecode(listed or b"").split("\0") if name]
    if not changed:
        return ()
    more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
    what = f"the interpreter that runs the check is the change's own: {changed[0]}{more} is not as at the base"
    return (Alteration(effect="loosened", model=CONFIG, what=what),)


def _parts(python: Path) -> Iterator[Path]:
    """The interpreter, and the environment around it."""
    yield python
    # Not `parents[1]`, which a file in the root folder does not have.
    if (python.parent.parent / "pyvenv.cfg").exists():
        yield python.parent.parent
