"""A folder with a config in it, as a user has it."""

from __future__ import annotations

from pathlib import Path

import pytest
from config_samples import Project


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The current folder: a repository with a few files that configs name."""
    folder = tmp_path / "repository"
    for name in (".git", "data", "images", "src"):
        (folder / name).mkdir(parents=True)
    for name in ("a.npz", "data/test_split.npz", "data/golden.npz"):
        (folder / name).touch()
    monkeypatch.chdir(folder)
    return Project(folder)
