"""A folder with a config in it, as a user has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from export_gate.config import Config, load_config
from export_gate.errors import UserError


class Project:
    """The current folder: a repository with a few files that configs name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def load(self, text: str | bytes) -> Config:
        """The config with this text."""
        path = self.folder / "export-gate.yml"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return load_config(Path("export-gate.yml"))

    def mistakes(self, text: str | bytes) -> list[str]:
        """The lines that the user sees for a config with this text."""
        with pytest.raises(UserError) as caught:
            self.load(text)
        return str(caught.value).splitlines()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    folder = tmp_path / "repository"
    for name in (".git", "data", "images", "src"):
        (folder / name).mkdir(parents=True)
    for name in ("a.npz", "data/test_split.npz", "data/golden.npz"):
        (folder / name).touch()
    monkeypatch.chdir(folder)
    return Project(folder)
