"""A config that the next change cannot be compared with, since git does not store what was read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from export_gate.config import Config
from export_gate.config.load import parse_config
from export_gate.loosening.record import CONFIG, Alteration
from export_gate.run.git import git_output
from export_gate.wall.errors import UserError


def unreadable_alterations(config: Config, environment: Mapping[str, str]) -> tuple[Alteration, ...]:
    """One alteration if git's index has no config in the place of this one.

    The index, since a run before a commit is no reason to say so.

    Args:
        config: one that the base has.
        environment: for git.
    """
    path = Path(os.path.abspath(config.path))  # noqa: PTH100 - as load_config names it
    why = _why_not(path, environment)
    what = f"git does not store {path.name} as it was read ({why}), so that the next change cannot be compared with it"
    return (Alteration(effect="loosened", model=CONFIG, what=what),) if why else ()


def _why_not(path: Path, environment: Mapping[str, str]) -> str:
    # From the folder as it is written: behind a link, git tracks the link alone.
    listed = git_output(
        path.parent, "ls-files", "-z", "--stage", "--", f":(literal){path.name}", environment=environment
    )
    if not listed:
        return "it is not tracked"
    mode, sha = listed.decode("ascii", "replace").split(" ")[:2]
    if mode == "120000":
        return "it is a link"
    content = git_output(path.parent, "cat-file", "blob", sha, environment=environment)
    try:
        parse_config(content or b"", path, is_past=True)
    except UserError:
        return "a filter of .gitattributes changes it"
    return ""
