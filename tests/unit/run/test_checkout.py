"""A path of the run's machine becomes one of the repository, or none."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from export_gate.config import load_config
from export_gate.run.checkout import Checkout, described_revision, find_checkout, head_revision

CONFIG = """\
version: 1
models:
  one:
    factory: m:make
    inputs: {x: {dtype: float32, shape: [2]}}
    targets: {pt2: {}}
  two:
    factory: m:make
    inputs: {x: {dtype: float32, shape: [2]}}
    targets: {pt2: {}}
"""


def _git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def test_the_config_is_found_in_its_repository(tmp_path: Path):
    """Lines are counted in the config, and its path starts at the top of the repository."""
    folder = tmp_path / "packages" / "vision"
    folder.mkdir(parents=True)
    (folder / "export-gate.yml").write_text(CONFIG)
    _git(tmp_path, "init")
    found = find_checkout(load_config(folder / "export-gate.yml"), ["one", "two"])
    assert found == Checkout(
        root=tmp_path.resolve().as_posix(), config="packages/vision/export-gate.yml", lines={"one": 3, "two": 7}
    )
    assert head_revision(folder) is None
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "-m", "start")
    head = head_revision(folder) or ""
    assert len(head) == 40
    assert described_revision(folder) == head
    (folder / "export-gate.yml").write_text(CONFIG + "\n")
    assert described_revision(folder) == f"{head}-dirty"


def test_outside_of_git_nothing_is_known(tmp_path: Path):
    """Then no annotation has a file."""
    (tmp_path / "export-gate.yml").write_text(CONFIG)
    assert find_checkout(load_config(tmp_path / "export-gate.yml"), ["one"]) == Checkout()


@pytest.mark.parametrize(
    ("root", "path", "relative"),
    [
        ("/w/shop", "/w/shop/src/m.py", "src/m.py"),
        ("/w/shop", "src/m.py", "src/m.py"),
        ("/w/shop", "/w/shopping/m.py", None),
        ("/w/shop", "/usr/lib/python3.11/m.py", None),
        ("/w/shop", "../m.py", None),
        ("/w/shop", "/w/shop/../m.py", None),
        ("/w/shop", "", None),
        ("", "/w/shop/m.py", None),
        ("", "m.py", "m.py"),
        ("D:/a/shop", "D:\\a\\shop\\src\\m.py", "src/m.py"),
        ("D:/a/shop", "C:\\m.py", None),
    ],
)
def test_paths(root: str, path: str, relative: str | None):
    """Windows runs are reported from Linux too."""
    assert Checkout(root=root).relative(path) == relative


@given(st.text(max_size=20), st.text(max_size=40))
def test_no_path_leaves_the_repository(root: str, path: str):
    """A stranger's results cannot point outside."""
    found = Checkout(root=root).relative(path)
    assert found is None or not (found.startswith("/") or ".." in found.split("/"))
