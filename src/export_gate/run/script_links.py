"""Scripts and actions behind links of the repository: git keeps the text of a link, and the content is elsewhere."""

from __future__ import annotations

import os.path
import posixpath
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from export_gate.run.git import git_line, git_output, git_paths
from export_gate.run.pushing import LINK


def linked(names: Collection[str], commit: str, root: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Path -> what stands for the text of a script there: where the link leads, and what git has there.

    Args:
        names: of scripts and actions, from the root of the checkout or from any folder of it.
        commit: whose links.
        root: of the checkout.
        environment: for git.
    """
    found: dict[str, str] = {}
    for link, place in _links(commit, root, environment):
        for name in names:
            path = link if f"/{link}".endswith(f"/{name}") else name if name.startswith(f"{link}/") else ""
            if path:
                target = posixpath.normpath(posixpath.join(posixpath.dirname(link), place, path[len(link) + 1 :]))
                there = git_line(root, "rev-parse", "--verify", "--quiet", f"{commit}:{target}")
                found[path] = f"a link to {target}\n{there}\n"
    return found


def _links(commit: str, root: Path, environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for entry in git_paths(root, "ls-tree", "-r", commit, environment=environment):
        facts, _, path = entry.partition("\t")
        if facts.startswith(LINK):
            yield (
                path,
                os.fsdecode(git_output(root, "cat-file", "blob", facts.split()[2], environment=environment) or b""),
            )
