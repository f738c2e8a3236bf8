"""The hooks as a user has them: pre-commit installs them, git runs them, a real remote receives or does not."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from harness.repositories import commit, git, once

PRE_COMMIT = (sys.executable, "-m", "pre_commit")
CONFIG = f"""
version: 1
python: {sys.executable}
models:
  head:
    factory: model:make
    inputs: {{input: {{dtype: float32, shape: [3, 2], range: [0, 1]}}}}
    controls: {{limit: 2}}
    targets: {{exported-program: {{}}, aoti: {{}}}}
"""
GOOD = """
import sys, torch
from pathlib import Path

def make():
    Path(__file__).with_name("interpreter.log").write_text(sys.prefix)
    return torch.nn.Linear(2, 2).eval()
"""
BROKEN = """
import torch

class Branches(torch.nn.Module):
    def forward(self, input):
        return input + 1 if input.sum() > 1 else input

def make():
    return Branches().eval()
"""
HOOKS = """
repos:
  - repo: {gate}
    rev: v1
    hooks:
      - id: export-gate
      - id: export-gate-validate
"""


@dataclass(frozen=True)
class Project:
    """A clone with the hooks installed, and its remote."""

    folder: Path
    remote: Path
    environment: dict[str, str]

    def run(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """A command in the clone, as the user."""
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    def push(self, *what: str) -> subprocess.CompletedProcess[str]:
        """`git push`, which runs the hooks."""
        return self.run("git", "push", "origin", *(what or ("main",)))

    def pushed(self) -> list[str]:
        """The commits that the remote has on main."""
        return git(self.remote, "log", "--format=%H", "--all").splitlines()

    def write(self, name: str, text: str) -> None:
        """A file of the project."""
        (self.folder / name).write_text(text)


@pytest.fixture
def project(tmp_path: Path, checkout: Path, clean_environment: dict[str, str], shared: Path) -> Project:
    """A project with a good model, cloned from a bare remote, `pre-commit install` done."""
    remote, folder = tmp_path / "remote.git", tmp_path / "clone"
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=main", str(remote))
    git(tmp_path, "clone", "--quiet", str(remote), str(folder))
    home = once(shared, "pre-commit-home", lambda _: None)
    environment = clean_environment | {"HOME": str(tmp_path), "PRE_COMMIT_HOME": str(home)}
    made = Project(folder=folder, remote=remote, environment=environment)
    for name, text in (
        ("export-gate.yml", CONFIG),
        ("model.py", GOOD),
        (".gitignore", "*.log\n__pycache__/\n"),
        (".pre-commit-config.yaml", HOOKS.format(gate=checkout)),
    ):
        made.write(name, text)
    for name in ("user.name=tester", "user.email=tester@example.invalid"):
        git(folder, "config", *name.split("="))
    commit(folder)
    git(folder, "branch", "--move", "main")
    installed = made.run(*PRE_COMMIT, "install", "--hook-type", "pre-push", "--hook-type", "pre-commit")
    assert installed.returncode == 0, installed.stdout
    return made


@pytest.mark.slow(seconds=10)
def test_good_model_is_pushed_and_a_broken_one_is_not(project: Project):
    """A push with a verified model reaches the remote; the next one, with a model that cannot be exported, does not."""
    first = git(project.folder, "rev-parse", "HEAD")
    pushed = project.push()
    assert pushed.returncode == 0, pushed.stdout
    assert "export-gate: 1 of 1 model verified" in pushed.stdout
    assert "aoti" not in pushed.stdout
    assert "note: " not in pushed.stdout
    assert project.pushed() == [first]
    assert git(project.folder, "status", "--porcelain") == ""
    assert (project.folder / "interpreter.log").read_text() == sys.prefix

    project.write("model.py", BROKEN)
    commit(project.folder)
    stopped = project.push()
    assert stopped.returncode == 1, stopped.stdout
    assert "export-failed" in stopped.stdout
    assert project.pushed() == [first]
    assert git(project.folder, "status", "--porcelain") == ""


@pytest.mark.slow(seconds=10)
def test_push_of_another_commit_and_of_a_changed_tree_is_said(project: Project):
    """The hook says so when what it verified is not what is pushed: another commit, or changes that are not in it."""
    pushed = git(project.folder, "rev-parse", "HEAD")
    project.write("README.md", "more\n")
    head = commit(project.folder)
    project.write("README.md", "still more\n")
    git(project.folder, "add", "README.md")
    done = project.push(f"{pushed}:refs/heads/other")
    assert done.returncode == 0, done.stdout
    assert (
        f"note: HEAD is not the commit that is pushed: {pushed[:10]} is pushed, {head[:10]} is checked out and "
        f"verified; check out {pushed[:10]} and run `export-gate run`, or leave that commit to the required check\n"
        "note: the check includes uncommitted changes that will not be pushed: README.md\n"
    ) in done.stdout
    assert done.stdout.index("note: ") < done.stdout.index("model with")


@pytest.mark.slow(seconds=10)
def test_an_import_that_nobody_added_stops_the_push(project: Project):
    """The push is stopped because the model's process read a file that the commit does not contain."""
    before = project.pushed()
    project.write("model.py", GOOD.replace("import sys, torch", "import sys, torch\nimport helper"))
    project.write("notes.txt", "untracked, and no model reads it\n")
    git(project.folder, "add", "model.py")
    git(project.folder, "commit", "--quiet", "--message", "use a helper")
    project.write("helper.py", "answer = 42\n")

    stopped = project.push()

    assert stopped.returncode == 1, stopped.stdout
    assert "note: the check includes untracked files that will not be pushed: helper.py and 1 more" in stopped.stdout
    assert "helper.py (untracked)" in stopped.stdout
    assert "notes.txt" not in stopped.stdout
    assert project.pushed() == before
    git(project.folder, "add", "helper.py")
    git(project.folder, "commit", "--quiet", "--message", "add the helper")
    git(project.folder, "tag", "v2")
    assert project.push("v2").returncode == 0


@pytest.mark.slow(seconds=10)
def test_a_push_of_ignored_files_starts_no_interpreter(project: Project):
    """It prints one line before any project code runs, and what the config loosens is compared with the remote's."""
    project.write("export-gate.yml", CONFIG.replace("version: 1", 'version: 1\nignore: ["*.md"]'))
    commit(project.folder)
    assert project.push().returncode == 0
    (project.folder / "interpreter.log").unlink()
    project.write("README.md", "words\n")
    commit(project.folder)

    done = project.push()

    assert done.returncode == 0, done.stdout
    assert "export-gate: nothing to verify: the push changes only files of `ignore`: README.md\n" in done.stdout
    assert not (project.folder / "interpreter.log").exists()
    project.write("export-gate.yml", CONFIG.replace("limit: 2", "limit: 1"))
    commit(project.folder)
    loosened = project.push()
    assert loosened.returncode == 0, loosened.stdout
    assert "this change loosens the check" in loosened.stdout
    assert "head: controls.limit 2 -> 1" in loosened.stdout


@pytest.mark.slow(seconds=10)
def test_a_push_that_changes_no_model_ends_at_once(project: Project):
    """What was verified before the first push is not run before the second one, and the hook says since when."""
    (project.environment).pop("EXPORT_GATE_RUN_NO_CACHE")
    first = project.push()
    assert first.returncode == 0, first.stdout
    assert "export-gate: 1 of 1 model verified" in first.stdout, first.stdout
    (project.folder / "interpreter.log").unlink()
    project.write("README.md", "Nothing that the model reads.")
    verified, _ = git(project.folder, "rev-parse", "HEAD"), commit(project.folder)

    second = project.push()

    assert second.returncode == 0, second.stdout
    assert "export-gate: nothing to verify: 1 model unchanged\n" in second.stdout, second.stdout
    assert f"head: unchanged since {verified[:10]}, verified 20" in second.stdout
    assert not (project.folder / "interpreter.log").exists()


@pytest.mark.slow
def test_wrong_key_is_flagged_at_commit(project: Project):
    """A commit with a mistake in a config is stopped, the message names the line, and no model is run."""
    before = git(project.folder, "rev-parse", "HEAD")
    project.write("export-gate.yml", CONFIG.replace("exported-program", "exported-progam"))
    (project.folder / "other").mkdir()
    project.write("other/export-gate.yaml", CONFIG.replace("limit", "limits"))
    (project.folder / ".github" / "workflows").mkdir(parents=True)
    project.write(".github/workflows/export-gate.yml", "on: push\n")
    git(project.folder, "add", "--all")
    stopped = project.run("git", "commit", "--message", "a mistake")
    assert stopped.returncode == 1, stopped.stdout
    assert "export-gate.yml:9:15: models.head.targets.exported-progam: " in stopped.stdout
    assert "other/export-gate.yaml:8:16: models.head.controls.limits: " in stopped.stdout
    assert ".github" not in stopped.stdout
    assert git(project.folder, "rev-parse", "HEAD") == before
    assert not (project.folder / "interpreter.log").exists()


@pytest.mark.slow(seconds=10)
def test_hook_never_takes_its_own_environment_for_the_projects(project: Project, tmp_path: Path):
    """Without a named interpreter, the hook takes the user's activated environment, not pre-commit's."""
    project.write("export-gate.yml", CONFIG.replace(f"python: {sys.executable}\n", ""))
    commit(project.folder)
    scripts = Path(sys.executable).parent
    path = f"{scripts}:{project.environment['PATH']}"
    done = project.run(*PRE_COMMIT, "run", "export-gate", "--hook-stage", "manual", PATH=path)
    assert done.returncode == 0, done.stdout
    assert f"1 model with {scripts / 'python'} (python on PATH)" in done.stdout
    assert (project.folder / "interpreter.log").read_text() == sys.prefix
