"""The state of files behind links."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from export_gate.cache.present import Present
from export_gate.wall.digest import digest_file


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout behind a link, with a linked folder and a linked file."""
    real = tmp_path / "real"
    (real / "data" / "deep").mkdir(parents=True)
    (real / "data" / "deep" / "a.npy").write_text("a")
    (real / "linked").symlink_to("data")
    (real / "one.npy").symlink_to("linked/deep/a.npy")
    (tmp_path / "checkout").symlink_to("real")
    return tmp_path / "checkout"


@pytest.mark.parametrize("name", ["data/deep/a.npy", "linked/deep/a.npy", "one.npy", "data/../linked/deep/a.npy"])
def test_a_file_is_where_the_system_says_that_it_is(root: Path, name: str):
    """With its place where that is another than its name's."""
    here = Present(root)
    real = os.path.realpath(root / name)
    is_elsewhere = Path(real) != root.resolve() / name
    assert here.file(name) == digest_file(root / name) + (f" in {real}" if is_elsewhere else "")
    assert is_elsewhere == (name != "data/deep/a.npy")


def test_a_link_that_is_moved_changes_the_state_of_what_is_behind_it(root: Path):
    """Also with equal contents, as relative names in the file may lead elsewhere."""
    before = Present(root).file("linked/deep/a.npy")
    (root / "copy" / "deep").mkdir(parents=True)
    (root / "copy" / "deep" / "a.npy").write_text("a")
    (root / "linked").unlink()
    (root / "linked").symlink_to("copy")
    assert Present(root).file("linked/deep/a.npy") != before


def test_a_link_that_leads_to_nothing_is_not_nothing(root: Path):
    """Code may ask whether there is a link."""
    before = Present(root).file("flag")
    (root / "flag").symlink_to("nowhere")
    after = Present(root).file("flag")
    (root / "flag").unlink()
    (root / "flag").symlink_to("elsewhere")
    assert len({before, after, Present(root).file("flag")}) == 3


@pytest.mark.parametrize("name", ["plugin-1.dist-info", "plugin.egg-info"])
def test_a_package_that_is_installed_among_the_sources_changes_the_state_of_their_folder(root: Path, name: str):
    """`importlib.metadata` finds its version and its entry points there; other folders mean nothing."""
    before = Present(root).modules(".", ["net"])
    (root / "notes").mkdir()
    assert Present(root).modules(".", ["net"]) == before
    (root / name).mkdir()
    assert Present(root).modules(".", ["net"]) != before
