"""Which models a change can touch, and how long each took."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import report_samples as samples
from cache_samples import DAY, World

from export_gate.cache.affected import Affected, affected, changed_since
from export_gate.cache.durations import durations
from export_gate.wall.errors import UserError

UNCHANGED = "unchanged since 1a2b3c4d5e, verified 2026-11-30"


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A project whose verdict is kept."""
    made = World(tmp_path / "project")
    assert made.keep() == ""
    return made


CHANGES: dict[str, tuple[Callable[[World], object], set[str], str]] = {
    "nothing": (lambda _: None, set(), UNCHANGED),
    "another file": (lambda world: world.write("README.md", "x"), {"README.md"}, UNCHANGED),
    "a file that it reads": (
        lambda world: world.write("helper.py", "x = 1"),
        {"helper.py", "README.md"},
        "helper.py changed since main",
    ),
    "a file in a submodule that is at another commit": (
        lambda world: world.write("data/a.npy", "x"),
        {"data"},
        f"data/a.npy changed since main; link.bin changed since its verification on {DAY}",
    ),
    "a file that git-lfs has not fetched": (
        lambda world: world.write("data/a.npy", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"),
        {"data/a.npy"},
        f"data/a.npy changed since main; link.bin changed since its verification on {DAY}",
    ),
    "a file in a folder that it lists": (
        lambda world: world.write("data/c.npy", "x"),
        {"data/c.npy"},
        "the entries of data changed since main",
    ),
    "a file that shadows an import": (
        lambda world: world.write("torch.py", "x"),
        {"torch.py"},
        "modules in . changed since main",
    ),
    "before the change": (
        lambda world: world.write("helper.py", "x = 1"),
        {"README.md"},
        f"helper.py changed since its verification on {DAY}",
    ),
    "the change and something else": (
        lambda world: (
            world.write("helper.py", "x = 1"),
            world.write("deeper.py", "x = 1"),
        ),
        {"helper.py"},
        f"helper.py changed since main; deeper.py changed since its verification on {DAY}",
    ),
    "the environment": (
        lambda world: world.environment.update(HOME="x", OMP_NUM_THREADS="2"),
        {"README.md"},
        f"the environment and 1 more changed since its verification on {DAY}",
    ),
    "the config": (
        lambda world: setattr(world, "contract", samples.contract("m", timeout_s=1.0)),
        {"export-gate.yml"},
        "its part of the config changed",
    ),
    "no cache": (lambda world: setattr(world, "contract", samples.contract("m", cache=False)), set(), "`cache: false`"),
    "no entry": (
        lambda world: [path.unlink() for path in world.files("entries")],
        set(),
        "no kept verdict says what it depends on",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_model_runs_unless_it_is_known_to_be_unchanged(world: World, name: str):
    """With what the change has of its dependencies first."""
    change, paths, why = CHANGES[name]
    change(world)
    runs = why != UNCHANGED
    assert affected(world.scene, (world.job,), paths, "main") == (Affected(model="m", runs=runs, why=why),)


def test_the_change_is_everything_that_differs_from_the_commit(tmp_path: Path):
    """Committed or not, tracked or not; what is ignored is not in it."""
    author = ("-c", "user.name=tester", "-c", "user.email=tester@example.invalid")

    def git(*arguments: str) -> None:
        subprocess.run(["git", *author, *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init", "--quiet")
    for name in ("committed", "edited", "deleted", "same"):
        (tmp_path / name).write_text("1")
    (tmp_path / ".gitignore").write_text("ignored")
    git("add", "--all")
    git("commit", "--quiet", "--message", "one")
    git("tag", "start")
    (tmp_path / "committed").write_text("2")
    git("commit", "--all", "--quiet", "--message", "two")
    (tmp_path / "edited").write_text("2")
    (tmp_path / "deleted").unlink()
    for name in ("new", "ignored"):
        (tmp_path / name).write_text("1")

    assert changed_since("start", tmp_path, {}) == {"committed", "edited", "deleted", "new"}
    with pytest.raises(UserError, match="--changed-since nowhere: the base nowhere is not a commit of this repository"):
        changed_since("nowhere", tmp_path, {})


def test_durations_are_those_of_the_last_run(world: World):
    """Of each model, whatever its verdict; what cannot be read is not known."""
    scene = world.scene
    config = world.root / "export-gate.yml"
    world.place.note_duration(scene.key("m"), 12.5)
    world.place.note_duration(scene.key("m"), 2.5)
    world.place.note_duration(scene.key("n"), 7.0)
    (world.place.path / "entries" / scene.key("n") / "seconds").write_text("-1")
    assert durations(world.place, config, "mno", world.environment) == {"m": 2.5}
    assert durations(world.place, config, "mno", {**world.environment, "GITHUB_REPOSITORY": "a/b"}) == {}
