"""A cache that a pull request could commit is no cache."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from harness.repositories import git

from export_gate.cache.committed import require_uncommitted
from export_gate.wall.errors import UserError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    git(folder, "init", "--quiet")
    return folder


def entry(folder: Path) -> None:
    """A forged verdict."""
    (folder / "entries").mkdir(parents=True)
    (folder / "entries" / "forged.json").touch()


def nested(root: Path) -> None:
    """A repository of its own at the folder's place, as a submodule is."""
    entry(root / "cache")
    git(root / "cache", "init", "--quiet")
    git(root / "cache", "add", "--all")
    git(root / "cache", "commit", "--quiet", "--message", "forged")


FORGED: dict[str, Callable[[Path], None]] = {
    "entries": lambda root: entry(root / "cache"),
    "a link to entries": lambda root: (entry(root / "data"), (root / "cache").symlink_to("data")),  # type: ignore[func-returns-value]
    "a submodule": nested,
}


@pytest.mark.parametrize("name", FORGED)
def test_a_folder_that_is_committed_is_refused(root: Path, name: str):
    """However the entries come there with a checkout."""
    FORGED[name](root)
    git(root, "add", "--all")
    with pytest.raises(UserError, match=r"cache: git tracks cache.*, so that a commit could forge verdicts"):
        require_uncommitted(root / "cache", root, dict(os.environ))


def test_a_link_above_the_folder_is_followed(root: Path):
    """The folder as it is named looks untracked."""
    entry(root / "data" / "cache")
    (root / "tmp").symlink_to("data")
    git(root, "add", "--all")
    with pytest.raises(UserError, match="git tracks data/cache/entries"):
        require_uncommitted(root / "tmp" / "cache", root, dict(os.environ))


def test_folders_that_a_workflow_restores_are_taken(root: Path, tmp_path: Path):
    """Untracked in the checkout, or outside of it."""
    entry(root / "cache")
    entry(tmp_path / "elsewhere")
    (root / "model.py").touch()
    git(root, "add", "model.py")
    for folder in (root / "cache", root / "missing", tmp_path / "elsewhere"):
        require_uncommitted(folder, root, dict(os.environ))
