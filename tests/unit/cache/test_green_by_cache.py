"""Ways to make a model that is red now green through a verdict that was kept: none of them works."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import report_samples as samples
from cache_samples import World, touched_back

from export_gate.cache.recall import recall
from export_gate.rules.base import Finding
from export_gate.rules.judge import Terms
from export_gate.wall.contract import Waiver


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A project whose verdict is kept."""
    made = World(tmp_path / "project")
    assert made.keep() == ""
    assert made.holds()
    return made


def replace_file(path: Path, target: str) -> None:
    """Another target of a link."""
    path.unlink()
    path.symlink_to(target)


CHANGES: dict[str, Callable[[World], object]] = {
    "a source": lambda world: world.write("model.py", "import helper, torch"),
    "a transitive import": lambda world: world.write("deeper.py", "x = 1"),
    "a data file": lambda world: world.write("data/a.npy", "A"),
    "a data file that git-lfs has not fetched": lambda world: world.write(
        "data/a.npy", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    ),
    "a data file of the same size and time": lambda world: touched_back(world.root / "data" / "a.npy", "A"),
    "the target of a link": lambda world: replace_file(world.root / "link.bin", "data/b.npy"),
    "the target of a link, with equal contents": lambda world: (
        world.write("copy.npy", "a"),
        replace_file(world.root / "link.bin", "copy.npy"),
    ),
    "a dependency is deleted": lambda world: (world.root / "deeper.py").unlink(),
    "a dependency becomes a folder": lambda world: (
        (world.root / "deeper.py").unlink(),
        (world.root / "deeper.py").mkdir(),
    ),
    "a file that was missing appears": lambda world: world.write("missing.json", "{}"),
    "a file appears in a folder that was listed": lambda world: world.write("data/c.npy", "c"),
    "a file disappears from a folder that was listed": lambda world: (world.root / "data" / "b.npy").unlink(),
    "a module that was not found appears": lambda world: world.write("speedups.py", ""),
    "a module shadows an installed package": lambda world: world.write("torch.py", ""),
    "a package shadows a module": lambda world: world.write("helper/__init__.py", ""),
    "a module appears in a folder of sys.path that was missing": lambda world: world.write("src/torch.py", ""),
    "a package is upgraded": lambda world: (world.root / "venv/site-packages/torch-2.13.0.dist-info").rename(
        world.root / "venv/site-packages/torch-2.14.0.dist-info"
    ),
    "a package of the same version is installed again with other contents": lambda world: world.write(
        "venv/site-packages/torch-2.13.0.dist-info/RECORD", "torch/__init__.py,sha256=2,2\n"
    ),
    "another package is installed": lambda world: world.write("venv/site-packages/flash-1.dist-info/RECORD", ""),
    "a .pth file": lambda world: world.write("venv/site-packages/setup.pth", "import other"),
    "a new .pth file": lambda world: world.write("venv/site-packages/more.pth", "/elsewhere"),
    "a sitecustomize": lambda world: world.write("venv/site-packages/sitecustomize.py", ""),
    "a file that no installer put there": lambda world: world.write("venv/site-packages/loose.py", "x = 1"),
    "the version of Python": lambda world: world.write("venv/pyvenv.cfg", "version = 3.12.1"),
    "a variable that was read": lambda world: world.environment.update(HOME="/home/other"),
    "a variable that was not set": lambda world: setattr(
        world, "contract", samples.contract("m", env={"CKPT": "weights/b.pt"})
    ),
    "a variable that native code reads": lambda world: world.environment.update(OMP_NUM_THREADS="2"),
    "the contract": lambda world: setattr(world, "contract", samples.contract("m", timeout_s=1.0)),
    "the repository": lambda world: world.environment.update(GITHUB_REPOSITORY="somebody/else"),
    "the day": lambda world: setattr(world, "day", "2027-01-01"),
    "the day, set back": lambda world: setattr(world, "day", "2026-11-29"),
}


@pytest.mark.parametrize("name", ["export-gate", "interpreter", "machine", "environment"])
def test_a_verdict_of_other_circumstances_is_not_reused(world: World, name: str):
    """Another version, interpreter, C library or CPU, or other variables that native code reads."""
    scene = world.scene
    other = replace(scene, circumstances={**scene.circumstances, name: "another"})
    assert recall(scene, (world.job,), world.report, Terms(today=world.day)).models
    assert not recall(other, (world.job,), world.report, Terms(today=world.day)).models


@pytest.mark.slow
@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_dependency_is_verified_again(world: World, name: str):
    """Whatever the change, the model runs."""
    CHANGES[name](world)
    assert not world.holds()


HARMLESS: dict[str, Callable[[World], object]] = {
    "nothing": lambda world: None,
    "another file": lambda world: world.write("README.md", "x"),
    "another module": lambda world: world.write("other_model.py", ""),
    "bytecode": lambda world: world.write("__pycache__/model.pyc", ""),
    "a file is touched": lambda world: os.utime(world.root / "model.py"),
    "a variable that nobody read": lambda world: world.environment.update(TERM="dumb"),
    "another day": lambda world: setattr(world, "day", "2026-12-24"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HARMLESS)
def test_what_it_does_not_depend_on_changes_nothing(world: World, name: str):
    """The tests above can fail."""
    HARMLESS[name](world)
    assert world.holds()


def test_an_edited_entry_is_ignored_and_replaced(world: World):
    """Another digest of a source does not fit the entry's own digest any more."""
    (path,) = world.files("entries")
    digest, body = path.read_text().split("\n")
    world.write("model.py", "raise SystemExit")
    changed = json.loads(body)
    changed["files"]["model.py"] = hashlib.sha256(b"raise SystemExit").hexdigest()
    text = json.dumps(changed)

    path.write_text(f"{digest}\n{text}")

    assert not world.holds()
    assert world.keep() == ""
    assert world.holds()


@pytest.mark.parametrize("field", ["repository", "config", "model", "contract"])
def test_an_entry_of_something_else_is_ignored_where_it_is_put(world: World, field: str):
    """An entry says itself whose it is: a copy in the place of another model's means nothing."""
    (path,) = world.files("entries")
    changed = json.loads(path.read_text().split("\n")[1])
    changed[field] = "another"
    body = json.dumps(changed)
    path.write_text(f"{hashlib.sha256(body.encode()).hexdigest()}\n{body}")
    assert not world.holds()


def test_edited_results_and_artifacts_are_ignored(world: World):
    """Each object has the digest that the entry names, or the model runs."""
    for path in world.files("objects"):
        content = path.read_bytes()
        path.write_bytes(content.replace(b"onnx", b"evil"))
        assert not world.holds()
        assert not (world.report / "artifacts" / "m" / "model.onnx").exists()
        path.write_bytes(content)
    assert world.holds()


def test_red_results_are_never_green(world: World):
    """Whatever an entry claims, what was observed is judged again, with the lock and the waivers of today."""
    waiver = Waiver(rule="value-mismatch", reason="ties", until="2026-12-31")
    red = Finding(rule="value-mismatch", severity="note", model="m", message="", hint="", waiver=waiver)
    assert world.keep(red) == ""
    assert world.holds()
    world.day = "2026-12-26"
    assert not world.holds()

    violation = Finding(rule="value-mismatch", severity="violation", model="m", message="", hint="")
    fresh = World(world.root.parent / "fresh" / "project")
    assert fresh.keep(violation) == ""
    assert fresh.files("entries") == []


def test_what_changed_while_the_model_ran_is_not_kept(tmp_path: Path):
    """The contents that are there at the end may not be those that were read."""
    world = World(tmp_path / "project")
    started = (world.root / "data" / "a.npy").stat().st_ctime_ns
    assert world.keep(started_ns=started) != ""
    assert world.files("entries") == []


def test_what_was_looked_at_before_the_model_ran_is_looked_at_again(world: World):
    """A file that changes after the search for an entry is kept as the model's process read it."""
    scene = world.scene
    world.write("model.py", "red")
    assert not recall(scene, (world.job,), world.report, Terms(today=world.day)).models
    world.write("model.py", "green")

    assert world.keep(scene=scene) == ""

    assert world.holds()
    world.write("model.py", "red")
    assert not world.holds()


def test_what_disappeared_or_appeared_while_the_model_ran_is_not_kept(tmp_path: Path):
    """Its process saw something else than there is at the end."""
    world = World(tmp_path / "project")
    (world.root / "deeper.py").unlink()
    assert world.keep() == "deeper.py changed while it was verified"
    world.write("deeper.py", "")
    world.write("missing.json", "{}")
    assert world.keep() == "missing.json changed while it was verified"


def test_what_the_model_generates_may_change_while_it_runs(tmp_path: Path):
    """And counts from then on as any other file."""
    world = World(tmp_path / "project")
    path = world.write("generated.py", "x = 1")
    files = (*world.dependencies().files, str(path))
    assert world.keep(files=files, written=(str(path),), started_ns=path.stat().st_ctime_ns + 1) == ""
    assert world.holds()
    path.write_text("x = 2")
    assert not world.holds()


def test_what_is_not_known_is_not_kept_and_said(tmp_path: Path):
    """With the place, from the root of the checkout."""
    world = World(tmp_path / "project")
    assert world.keep(unknown=(f"it reads the clock ({world.root}/model.py:3)",)) == "it reads the clock (model.py:3)"
    assert world.files("entries") == []


@pytest.mark.parametrize("contract", [samples.contract("m", cache=False)])
def test_a_model_that_asks_for_no_cache_has_none(tmp_path: Path, contract: object):
    """`cache: false`: neither kept nor reused."""
    world = World(tmp_path / "project")
    assert world.keep() == ""
    world.contract = contract  # type: ignore[assignment]
    assert not world.holds()
    other = World(tmp_path / "other" / "project", contract=contract)  # type: ignore[arg-type]
    assert other.keep() == ""
    assert other.files("entries") == []


@pytest.mark.parametrize("change", ["data/b.npy", "data/inner/c.npy"])
def test_paths_are_dependencies(tmp_path: Path, change: str):
    """Of a folder, every file below it, and files that appear there."""
    world = World(tmp_path / "project", contract=samples.contract("m", paths=("data", "model.py")))
    (world.root / "data" / "inner").mkdir()
    assert world.keep(folders=()) == ""
    assert world.holds()
    world.write(change, "changed")
    assert not world.holds()


@pytest.mark.slow
@pytest.mark.parametrize("named", [{"kwargs": {"deep": ["data/b.npy"]}}, {"env": {"CKPT": "data/b.npy"}}])
def test_texts_of_the_contract_that_name_a_file_are_dependencies(tmp_path: Path, named: dict[str, object]):
    """The factory may give the path to native code."""
    world = World(tmp_path / "project", contract=samples.contract("m", **named))
    assert world.keep() == ""
    assert world.holds()
    world.write("data/b.npy", "B")
    assert not world.holds()
