"""What a hook finds when nothing has changed since the last run of the same command, and everything that ends it."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cache_samples import DAY, World

from export_gate.cache.folder import CacheFolder
from export_gate.cache.present import Present
from export_gate.cache.standing import Standing, command_name, is_preferred, standing_entries, write_standing
from export_gate.run.git import UnreadableError
from export_gate.wall.errors import UserError

NAME = command_name("/project", ["--skip-target", "aoti"])


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A project whose only model was verified by one command."""
    made = World(tmp_path / "project")
    assert made.keep() == ""
    (entry,) = [path for path in made.files("entries") if path.suffix == ".json"]
    python = made.root / "venv" / "bin" / "python"
    python.chmod(0o755)
    config = made.root / "export-gate.yml"
    standing = Standing(
        config=str(config),
        config_sha256=hashlib.sha256(config.read_bytes()).hexdigest(),
        lock=Present(made.root).file("export-gate.lock"),
        python_option=str(python),
        python_configured=None,
        python=str(python),
        models={"m": entry.relative_to(made.place.path).as_posix()},
        inputs=("data/a.npy",),
    )
    write_standing(made.scene, NAME, standing)
    assert stands(made)
    return made


def stands(world: World, name: str = NAME, day: str = DAY) -> bool:
    """Whether the hook has nothing to do."""
    return standing_entries(world.place, name, world.environment, day) is not None


CHANGES: dict[str, Callable[[World], object]] = {
    "a dependency": lambda world: world.write("deeper.py", "x = 1"),
    "the config": lambda world: world.write("export-gate.yml", "version: 1\n"),
    "a lock appears": lambda world: world.write("export-gate.lock", "{}"),
    "the interpreter": lambda world: world.environment.update(OMP_NUM_THREADS="2"),
    "the entry": lambda world: [path.unlink() for path in world.files("entries")],
    "the record": lambda world: world.place.add_standing(NAME, b"x" + (world.place.standing(NAME) or b"")),
    "a base that is not there": lambda world: world.environment.update(PRE_COMMIT_FROM_REF="HEAD"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_whatever_changes_takes_the_usual_way(world: World, name: str):
    """The record says only that nothing has."""
    CHANGES[name](world)
    assert not stands(world)


def test_the_base_must_have_the_same_config(world: World):
    """What a push loosens is found out by the usual run."""
    author = ("-c", "user.name=tester", "-c", "user.email=tester@example.invalid")
    (world.root / ".git").rmdir()
    for command in (("init", "--quiet"), ("add", "export-gate.yml"), ("commit", "--quiet", "--message", "one")):
        subprocess.run(["git", *author, *command], cwd=world.root, check=True)
    world.environment["PRE_COMMIT_FROM_REF"] = "HEAD"
    assert stands(world)
    (world.root / "export-gate.yml").write_text("version: 1 # looser")
    subprocess.run(["git", *author, "commit", "--all", "--quiet", "--message", "two"], cwd=world.root, check=True)
    (world.root / "export-gate.yml").write_text("version: 1")
    assert not stands(world)


CHECKED = (
    ".github/workflows/ci.yml",
    ".pre-commit-config.yaml",
    "tools/action.yml",
    "tools/export-gate.sh",
    "ci/gate.py",
    "bin/gate",
    "export-gate.lock",
    "data/a.npy",
    "nets/lax.yml",
    ".python-version",
    "venv/bin/python",
    "venv/lib/tool.py",
)


@pytest.mark.parametrize("changed", CHECKED)
def test_workflows_and_interpreter_must_be_those_of_the_base(world: World, changed: str):
    """They decide about the check, too, and the usual run says what a change makes of them."""
    author = ("-c", "user.name=tester", "-c", "user.email=tester@example.invalid")
    (world.root / ".git").rmdir()
    now = world.root / changed
    before = now.read_bytes() if now.exists() else None
    world.write(changed, "looser, with export-gate and a factory")
    for command in (
        ("init", "--quiet"),
        ("add", "export-gate.yml", changed),
        ("commit", "--quiet", "--message", "one"),
    ):
        subprocess.run(["git", *author, *command], cwd=world.root, check=True)
    world.environment["PRE_COMMIT_FROM_REF"] = "HEAD"
    now.unlink()
    if before is not None:
        now.write_bytes(before)
        now.chmod(0o755)
    assert not stands(world)
    subprocess.run(["git", *author, "commit", "--all", "--quiet", "--message", "two"], cwd=world.root, check=True)
    assert stands(world)


@pytest.mark.parametrize("is_named", [False, True])
def test_a_script_decides_something_where_a_workflow_names_it(world: World, is_named: bool):
    """Most pushes change some script. Beside the gate, one can do what a line of the workflow can."""
    author = ("-c", "user.name=tester", "-c", "user.email=tester@example.invalid")
    (world.root / ".git").rmdir()
    world.write("tools/build.sh", "one")
    world.write(".github/workflows/ci.yml", f"jobs: {{}} # {'cd tools; ./build.sh' if is_named else ''}")
    for command in (
        ("init", "--quiet"),
        ("add", "export-gate.yml", "tools", ".github"),
        ("commit", "--quiet", "--message", "one"),
    ):
        subprocess.run(["git", *author, *command], cwd=world.root, check=True)
    world.environment["PRE_COMMIT_FROM_REF"] = "HEAD"
    world.write("tools/build.sh", "two")

    assert stands(world) != is_named


@pytest.mark.slow
def test_a_change_of_more_files_than_a_command_takes_is_not_overlooked(world: World):
    """The names are longer than the system allows for one command, and one of the files starts the gate."""
    (world.root / ".git").rmdir()
    names = [f"{number:0200}.sh" for number in range(12_000)]
    entries = "".join(f"M 100644 inline {name}\ndata 1\nx\n" for name in names)
    config = (world.root / "export-gate.yml").read_text()
    stream = (
        "commit refs/heads/main\ncommitter tester <tester@example.invalid> 0 +0000\ndata 0\n"
        f"M 100644 inline export-gate.yml\ndata {len(config)}\n{config}\n{entries}"
    )
    for command, given in (
        (("init", "--quiet", "--initial-branch=main"), ""),
        (("fast-import", "--quiet"), stream),
        (("read-tree", "main:"), ""),
    ):
        subprocess.run(["git", *command], cwd=world.root, input=given, text=True, check=True)
    world.environment["PRE_COMMIT_FROM_REF"] = "HEAD"

    with pytest.raises(UnreadableError):
        stands(world)


def test_a_folder_that_a_change_could_commit_is_refused(world: World):
    """As in the usual run: whoever can commit a record can forge it."""
    (world.root / ".git").rmdir()
    inside = CacheFolder(path=world.place.path.rename(world.root / "kept"))
    subprocess.run(["git", "init", "--quiet"], cwd=world.root, check=True)
    assert standing_entries(inside, NAME, world.environment, DAY) is not None
    subprocess.run(["git", "add", "kept"], cwd=world.root, check=True)
    with pytest.raises(UserError, match="so that a commit could forge verdicts"):
        standing_entries(inside, NAME, world.environment, DAY)


def test_another_command_or_folder_has_its_own_record(world: World):
    """A run of one model says nothing about the others."""
    assert not stands(world, command_name("/project", ["m"]))
    assert not stands(world, command_name("/other", ["--skip-target", "aoti"]))
    assert not stands(world, day="2027-03-01")


def test_a_config_that_would_be_preferred_counts(tmp_path: Path):
    """`export-gate.yml` is read before `export-gate.yaml`."""
    other = tmp_path / "export-gate.yaml"
    assert is_preferred(other)
    (tmp_path / "export-gate.yml").touch()
    assert not is_preferred(other)
    assert is_preferred(tmp_path / "export-gate.yml")
    assert is_preferred(tmp_path / "nets.yml")


def test_the_hook_imports_little(world: World):
    """Neither what the project needs nor what draws reports or reads the config."""
    heavy = {"torch", "numpy", "onnx", "onnxruntime", "rich", "jinja2", "yaml", "urllib3", "pydantic"}
    code = f"import sys, export_gate.cli.start, export_gate.cli.idle; print(sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
