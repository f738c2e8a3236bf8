"""A path on the run's machine becomes one in the repository, or none."""

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
    """Lines are counted in the config, and its path starts at the root of the repository."""
    folder = tmp_path / "packages" / "vision"
    folder.mkdir(parents=True)
    (folder / "export-gate.yml").write_text(CONFIG)
    _git(tmp_path, "init")
    found = find_checkout(load_config(folder / "export-gate.yml"), ["one", "two"])
    assert found.root == tmp_path.resolve().as_posix()
    assert found.config == "packages/vision/export-gate.yml"
    assert found.lines == {"one": 3, "two": 7}
    assert head_revision(folder) is None
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "-m", "start")
    head = head_revision(folder) or ""
    assert len(head) == 40
    assert described_revision(folder) == head
    (folder / "export-gate.yml").write_text(CONFIG + "\n")
    assert described_revision(folder) == f"{head}-dirty"


KEYS = """\
version: 1
defaults:
  targets:
    onnx: {}
    pt2: {}
models:
  one:
    factory: m:make
    dims:
      batch: {min: 2, max: 4}
    inputs:
      x: {dtype: float32, shape: [batch, 2]}
      y: {dtype: float32, shape: [2]}
    outputs:
      logits: {dtype: float32, shape: [batch, 2]}
    waivers:
      - {rule: guard-missing, until: 2099-01-01, reason: known}
  two:
    factory: m:make
    inputs: {x: {dtype: float32, shape: [2]}}
    targets: {pt2: {}}
"""


@pytest.mark.parametrize(
    ("model", "key", "line"),
    [
        ("one", "dims.batch", 10),
        ("one", "dims", 9),
        ("one", "inputs.y", 13),
        ("one", "inputs.y.range", 13),
        ("one", "outputs.logits", 15),
        ("one", "outputs.other", 14),
        ("one", "targets.onnx", 4),
        ("one", "waivers[0]", 17),
        ("one", "waivers[7]", 16),
        ("one", "train-mode", 7),
        ("one", "", 7),
        ("two", "targets.pt2", 21),
        ("two", "dims.batch", 18),
        ("three", "dims.batch", 1),
        (None, "", 1),
    ],
)
def test_a_key_has_its_line(tmp_path: Path, model: str | None, key: str, line: int):
    """A key that the config does not have gets the line of the nearest key above it; a default has its own line."""
    (tmp_path / "export-gate.yml").write_text(KEYS)
    _git(tmp_path, "init")
    found = find_checkout(load_config(tmp_path / "export-gate.yml"), ["one", "two"])
    assert found.line(model, key) == line


def test_outside_of_git_nothing_is_known(tmp_path: Path):
    """No annotation has a file then; paths in texts begin at the config's folder."""
    (tmp_path / "export-gate.yml").write_text(CONFIG)
    assert find_checkout(load_config(tmp_path / "export-gate.yml"), ["one"]) == Checkout(folder=tmp_path.as_posix())


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
    """Runs on Windows are reported from Linux too."""
    assert Checkout(root=root).relative(path) == relative


@given(st.text(max_size=20), st.text(max_size=40))
def test_no_path_leaves_the_repository(root: str, path: str):
    """A stranger's results cannot point outside."""
    found = Checkout(root=root).relative(path)
    assert found is None or not (found.startswith("/") or ".." in found.split("/"))
