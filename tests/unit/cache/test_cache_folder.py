"""The folder of kept verdicts, in whatever state it is: no run fails over it, and nothing outside of it is touched."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from cache_samples import World

from export_gate.cache.folder import CacheFolder
from export_gate.cache.place import choose_folder
from export_gate.cache.prune import GRACE_S, MOST_UNUSED_DAYS, prune

DAY_S = 86400


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A project whose verdict is kept."""
    made = World(tmp_path / "project")
    assert made.keep() == ""
    return made


def as_link(path: Path) -> None:
    """Move a file or folder away and put a link in its place."""
    moved = path.rename(path.with_name(f"{path.name}-elsewhere"))
    path.symlink_to(moved)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "no JSON": lambda path: path.write_bytes(b"\xff\x00"),
    "of another version": lambda path: path.write_bytes(path.read_bytes().replace(b'"format":1', b'"format":2')),
    "a link": as_link,
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a pipe": lambda path: (path.unlink(), os.mkfifo(path)),
    "deleted": lambda path: path.unlink(),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["entries", "objects"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files_are_ignored_and_replaced(world: World, kind: str, damage: str):
    """The model runs, and its verdict is kept again."""
    if damage == "of another version" and kind == "objects":
        return  # the entry names their bytes
    for path in world.files(kind):
        DAMAGES[damage](path)
    assert not world.holds()
    if damage != "a folder":
        assert world.keep() == ""
        assert world.place.problem == ""
        assert world.holds()


@pytest.mark.parametrize("part", ["entries", "objects"])
def test_folders_that_are_links_are_not_followed(world: World, part: str):
    """Neither to read nor to write nor to remove."""
    as_link(world.place.path / part)
    before = {path for path in world.place.path.parent.rglob("*") if path.is_file()}
    assert not world.holds()
    assert world.keep() == ""
    assert world.place.problem.endswith("one of its parts is not a folder of this user's")
    prune(world.place, now_s=1e12)
    assert before <= {path for path in world.place.path.parent.rglob("*") if path.is_file()} | {
        world.report / "artifacts" / "m" / "model.onnx"
    }


def test_a_link_to_the_folder_itself_is_the_users_choice(tmp_path: Path):
    """Such as to another disk."""
    world = World(tmp_path / "project")
    (tmp_path / "disk").mkdir()
    world.place.path.symlink_to(tmp_path / "disk")
    assert world.keep() == ""
    assert world.holds()


def test_the_folder_may_be_on_another_file_system(tmp_path: Path):
    """A verdict goes there and comes back, though no file can be moved or linked between the two."""
    other = Path("/dev/shm") if sys.platform == "linux" else tmp_path
    with tempfile.TemporaryDirectory(dir=other) as disk:
        world = World(tmp_path / "project")
        world.place = CacheFolder(path=Path(disk) / "cache")
        assert sys.platform != "linux" or Path(disk).stat().st_dev != tmp_path.stat().st_dev
        assert world.keep() == ""
        (world.report / "artifacts" / "m" / "model.onnx").unlink()
        assert world.holds()
        assert (world.report / "artifacts" / "m" / "model.onnx").is_file()
        assert world.place.problem == ""


def test_files_of_other_users_are_not_read(world: World, monkeypatch: pytest.MonkeyPatch):
    """On a shared machine, a folder that others can write says nothing."""
    own = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: own + 1)
    assert not world.holds()


@pytest.mark.parametrize(
    "error",
    [PermissionError(13, "Permission denied"), OSError(28, "No space left on device"), OSError(30, "Read-only")],
)
def test_a_folder_that_cannot_be_written_is_said_once(tmp_path: Path, error: OSError, monkeypatch: pytest.MonkeyPatch):
    """Read-only, full, on whatever file system: the run goes on."""
    world = World(tmp_path / "project")

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("export_gate.cache.folder.os.urandom", fail)
    assert world.keep() == ""
    assert world.place.problem == f"{world.place.path}: {error.strerror}"
    prune(world.place)
    assert not world.holds()


def test_a_file_in_the_place_of_the_folder_is_said(tmp_path: Path):
    """And is left alone."""
    world = World(tmp_path / "project")
    world.place.path.write_text("mine")
    assert world.keep() == ""
    assert world.place.problem
    assert not world.holds()
    assert world.place.path.read_text() == "mine"


def test_a_kept_verdict_is_used_from_a_folder_that_nothing_is_written_to(world: World):
    """`--cache-read-only`: not even the time of use."""
    world.place.keeps = False
    before = {path: path.stat().st_mtime_ns for path in world.files("entries")}
    assert world.holds()
    world.write("model.py", "changed")
    assert world.keep() == ""
    assert {path: path.stat().st_mtime_ns for path in world.files("entries")} == before
    assert not world.holds()


@pytest.mark.slow
def test_several_runs_share_the_folder(tmp_path: Path):
    """Each file appears at once and whole, whoever wins."""
    worlds = [World(tmp_path / "project")]
    worlds[0].observation()

    def work() -> None:
        for _ in range(5):
            assert worlds[0].keep() == ""
            prune(CacheFolder(path=worlds[0].place.path))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert worlds[0].place.problem == ""
    assert worlds[0].holds()
    assert not list(worlds[0].place.path.rglob(".partial-*"))


def test_verdicts_of_several_branches_are_kept(world: World):
    """Going back to what was verified before needs no run."""
    world.write("model.py", "second")
    assert world.keep() == ""
    assert len(world.files("entries")) == 2
    assert world.holds()
    world.write("model.py", "import helper")
    assert world.holds()


def test_what_is_not_used_for_long_is_removed(world: World):
    """The entry, and then what only it needed; what is young may be of a run that is not done."""
    now = world.files("entries")[0].stat().st_mtime
    prune(world.place, now_s=now + (MOST_UNUSED_DAYS - 1) * DAY_S)
    assert world.holds()
    prune(world.place, now_s=now + GRACE_S / 2)
    prune(world.place, now_s=now + (MOST_UNUSED_DAYS + 1) * DAY_S)
    assert (world.files("entries"), world.files("objects")) == ([], [])


def test_what_was_used_longest_ago_goes_first(world: World):
    """Down to the limit, with what several entries need counted once."""
    (first,) = world.files("entries")
    os.utime(first, (1e9, 1e9))
    world.write("model.py", "second")
    assert world.keep() == ""
    size = sum(path.stat().st_size for kind in ("entries", "objects") for path in world.files(kind))
    now = max(path.stat().st_mtime for path in world.files("entries"))
    os.utime(first, (now - 10, now - 10))

    prune(CacheFolder(path=world.place.path, limit_bytes=size), now_s=now)
    assert len(world.files("entries")) == 2
    prune(CacheFolder(path=world.place.path, limit_bytes=size - 1), now_s=now)

    assert first not in world.files("entries")
    assert world.holds()


def test_artifacts_that_would_fill_the_folder_are_not_kept(tmp_path: Path):
    """It is said, with their size."""
    world = World(tmp_path / "project")
    world.place.limit_bytes = 7
    assert world.keep() == "its artifacts are larger than half of the cache (4 bytes)"
    assert world.files("entries") == []


@pytest.mark.parametrize(
    ("named", "environment", "folder"),
    [
        (Path("/named"), {"CI": "true", "EXPORT_GATE_CACHE": "/given"}, Path("/named")),
        (None, {"CI": "true", "EXPORT_GATE_CACHE": "/given"}, Path("/given")),
        (None, {"CI": "true", "HOME": "/home/user"}, None),
        (None, {"CI": "false", "HOME": "/home/user"}, Path("/home/user/.cache/export-gate")),
        (None, {"HOME": "/home/user", "XDG_CACHE_HOME": "/caches"}, Path("/caches/export-gate")),
        (None, {"HOME": "/home/user", "XDG_CACHE_HOME": "relative"}, None),
        (None, {}, None),
    ],
)
def test_the_folder_is_the_named_one_or_the_users(named: Path | None, environment: dict[str, str], folder: Path | None):
    """On a CI runner there is none unless somebody names it."""
    assert choose_folder(named, environment) == folder
