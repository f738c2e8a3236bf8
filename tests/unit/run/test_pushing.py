"""What is pushed against what a hook verifies, in real repositories."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from export_gate.config import load_config
from export_gate.run.pushing import find_push, nothing_to_verify

AUTHOR = ("-c", "user.name=tester", "-c", "user.email=tester@example.invalid", "-c", "commit.gpgsign=false")


def git(folder: Path, *arguments: str) -> str:
    """What git prints."""
    done = subprocess.run(["git", *AUTHOR, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two commits on main, the second one checked out and clean."""
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    for text in ("one", "two"):
        (tmp_path / "model.py").write_text(text)
        (tmp_path / "weights.bin").write_text(text)
        git(tmp_path, "add", "--all")
        git(tmp_path, "commit", "--quiet", "--message", text)
    return tmp_path


def said(environment: dict[str, str], folder: Path) -> list[str]:
    """What the hook says first."""
    return list(find_push(environment, folder).notes)


def test_pushed_head_is_not_worth_a_word(repository: Path):
    """A push of what is checked out says nothing, by whatever name it is pushed."""
    for name in (git(repository, "rev-parse", "HEAD"), "refs/heads/main", "HEAD"):
        assert said({"PRE_COMMIT_TO_REF": name}, repository) == []


@pytest.mark.parametrize("variable", ["PRE_COMMIT_TO_REF", "PRE_COMMIT_LOCAL_BRANCH"])
def test_push_of_another_commit_is_said(repository: Path, variable: str):
    """Which commit is pushed, which one is verified, and what to do; also where the whole history is pushed."""
    first, head = (git(repository, "rev-parse", name) for name in ("HEAD^", "HEAD"))
    git(repository, "branch", "other", "HEAD^")
    (text,) = said({variable: "refs/heads/other"}, repository)
    assert text == (
        f"HEAD is not the commit that is pushed: {first[:10]} is pushed, {head[:10]} is checked out and verified; "
        f"check out {first[:10]} and run `export-gate run`, or leave that commit to the required check"
    )


def test_annotated_tag_of_head_is_head(repository: Path):
    """A tag object stands for the commit that it names."""
    git(repository, "tag", "--annotate", "--message", "release", "v1")
    tag = git(repository, "rev-parse", "v1")
    assert tag != git(repository, "rev-parse", "HEAD")
    assert said({"PRE_COMMIT_TO_REF": tag}, repository) == []


def test_changes_that_are_not_pushed_are_said(repository: Path):
    """Uncommitted changes of tracked files, staged or not, and untracked files are named."""
    (repository / "model.py").write_text("three")
    pushing = {"PRE_COMMIT_TO_REF": "HEAD"}
    assert said(pushing, repository) == ["the check includes uncommitted changes that will not be pushed: model.py"]
    (repository / "weights.bin").write_text("three")
    git(repository, "add", "weights.bin")
    assert said(pushing, repository) == [
        "the check includes uncommitted changes that will not be pushed: model.py and 1 more"
    ]
    (repository / "helper.py").write_text("three")
    assert said(pushing, repository)[1:] == ["the check includes untracked files that will not be pushed: helper.py"]


def test_each_file_that_is_not_pushed_as_it_is_has_its_reason(repository: Path):
    """Against the pushed commit, which need not be HEAD: untracked, staged or changed; ignored files are left out."""
    (repository / ".gitignore").write_text("*.log\n")
    (repository / "run.log").write_text("x")
    (repository / "new folder").mkdir()
    (repository / "new folder" / "über.py").write_text("x")
    (repository / "staged.py").write_text("x")
    git(repository, "add", "staged.py", ".gitignore")

    push = find_push({"PRE_COMMIT_TO_REF": "HEAD^"}, repository / "new folder")

    assert push.unpushed == {
        ".gitignore": "not committed",
        "model.py": "not committed",
        "staged.py": "not committed",
        "weights.bin": "not committed",
        "new folder/über.py": "untracked",
    }


def test_nothing_is_said_outside_of_a_push(repository: Path):
    """Without pre-commit's variables there is nothing to compare."""
    (repository / "model.py").write_text("three")
    assert said({}, repository) == []
    assert find_push({}, repository).unpushed == {}


def test_a_push_that_cannot_be_compared_is_said(repository: Path, tmp_path_factory: pytest.TempPathFactory):
    """An unknown commit, or no repository, is not a push without differences."""
    missing = "0" * 40
    assert said({"PRE_COMMIT_TO_REF": missing}, repository) == [f"the commit that is pushed was not found: {missing}"]
    plain = tmp_path_factory.mktemp("plain")
    assert said({"PRE_COMMIT_TO_REF": "HEAD"}, plain) == ["the commit that is pushed was not found: HEAD"]


CONFIG = """
version: 1
ignore: ["docs/**", "*.md", "assets/*.png"]
models: {m: {factory: "model:make", inputs: {x: {dtype: float32, shape: [2]}}}}
"""


@pytest.mark.parametrize(
    ("files", "idle"),
    [
        (("docs/deep/page.html", "README.md", "nets/notes.md", "assets/a.png"), True),
        (("README.md", "model.py"), False),
        (("assets/deep/a.png",), False),
        (("docs.py",), False),
        (("nets/docs/a.txt",), False),
        (("docs/export-gate.yml",), False),
        (("docs/export-gate.lock",), False),
    ],
)
def test_a_push_of_ignored_files_needs_no_model(repository: Path, files: tuple[str, ...], idle: bool):
    """Only if every changed file matches; what decides the check itself never does."""
    (repository / "export-gate.yml").write_text(CONFIG)
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", "config")
    for name in files:
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text("x")
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", "files")
    config = load_config(repository / "export-gate.yml")

    why = nothing_to_verify(config, {"PRE_COMMIT_FROM_REF": "HEAD^", "PRE_COMMIT_TO_REF": "HEAD"})

    assert (why is not None) == idle
    if idle:
        assert why == "nothing to verify: the push changes only files of `ignore`: README.md and 3 more"
    assert nothing_to_verify(config, {}) is None
    assert nothing_to_verify(config, {"PRE_COMMIT_FROM_REF": "0" * 40, "PRE_COMMIT_TO_REF": "HEAD"}) is None


def test_a_file_that_moves_out_of_the_ignored_ones_counts_twice(repository: Path):
    """A rename is a removal, too."""
    (repository / "export-gate.yml").write_text(CONFIG)
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", "config")
    git(repository, "mv", "weights.bin", "weights.md")
    git(repository, "commit", "--quiet", "--message", "files")
    config = load_config(repository / "export-gate.yml")

    assert nothing_to_verify(config, {"PRE_COMMIT_FROM_REF": "HEAD^", "PRE_COMMIT_TO_REF": "HEAD"}) is None
