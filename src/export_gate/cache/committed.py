"""Refuse a cache that the change itself can fill: whoever can commit an entry can forge a verdict."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from export_gate.run.git import git_output
from export_gate.wall.errors import UserError


def require_uncommitted(folder: Path, root: Path, environment: Mapping[str, str]) -> None:
    """Check that git tracks nothing in the folder, nor the folder itself as a link or a repository of its own.

    Args:
        folder: where verdicts are kept, as it was named.
        root: of the checkout.
        environment: for git.

    Raises:
        UserError: it does.
    """
    for place in dict.fromkeys((folder, folder.resolve())):
        # Both ends: a link above the folder leads to another place of the same checkout.
        for top in dict.fromkeys((root, root.resolve())):
            if top not in place.parents:
                continue
            name = place.relative_to(top).as_posix()
            listed = git_output(root, "ls-files", "-z", "--", f":(top,literal){name}", environment=environment)
            if listed:
                first = os.fsdecode(listed).partition("\0")[0]
                raise UserError(
                    f"{folder}: git tracks {first}, so that a commit could forge verdicts",
                    "name a folder outside of the checkout, or remove these files from git",
                )
