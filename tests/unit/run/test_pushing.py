"""What is pushed against what a hook verifies, in real repositories."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from export_gate.run.pushing import differences

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


def test_pushed_head_is_not_worth_a_word(repository: Path):
    """A push of what is checked out says nothing, by whatever name it is pushed."""
    for name in (git(repository, "rev-parse", "HEAD"), "refs/heads/main", "HEAD"):
        assert list(differences({"PRE_COMMIT_TO_REF": name}, repository)) == []


@pytest.mark.parametrize("variable", ["PRE_COMMIT_TO_REF", "PRE_COMMIT_LOCAL_BRANCH"])
def test_push_of_another_commit_is_said(repository: Path, variable: str):
    """Which commit is pushed, which one is verified, and what to do; also where the whole history is pushed."""
    first, head = (git(repository, "rev-parse", name) for name in ("HEAD^", "HEAD"))
    git(repository, "branch", "other", "HEAD^")
    (said,) = differences({variable: "refs/heads/other"}, repository)
    assert said == (
        f"HEAD is not the commit that is pushed: {first[:10]} is pushed, {head[:10]} is checked out and verified; "
        f"check out {first[:10]} and run `export-gate run`, or leave that commit to the required check"
    )


def test_annotated_tag_of_head_is_head(repository: Path):
    """A tag object stands for the commit that it names."""
    git(repository, "tag", "--annotate", "--message", "release", "v1")
    tag = git(repository, "rev-parse", "v1")
    assert tag != git(repository, "rev-parse", "HEAD")
    assert list(differences({"PRE_COMMIT_TO_REF": tag}, repository)) == []


def test_changes_that_are_not_pushed_are_said(repository: Path):
    """Uncommitted changes of tracked files, staged or not, are named; untracked files are not."""
    (repository / "model.py").write_text("three")
    (repository / "notes.txt").write_text("three")
    pushing = {"PRE_COMMIT_TO_REF": "HEAD"}
    assert list(differences(pushing, repository)) == [
        "the check included uncommitted changes that will not be pushed: model.py"
    ]
    (repository / "weights.bin").write_text("three")
    git(repository, "add", "weights.bin")
    assert list(differences(pushing, repository)) == [
        "the check included uncommitted changes that will not be pushed: model.py and 1 more"
    ]


def test_nothing_is_said_outside_of_a_push(repository: Path, tmp_path_factory: pytest.TempPathFactory):
    """Without pre-commit's variables, an unknown commit or a repository there is nothing to compare."""
    (repository / "model.py").write_text("three")
    assert list(differences({}, repository)) == []
    git(repository, "checkout", "--quiet", "--force", "main")
    assert list(differences({"PRE_COMMIT_TO_REF": "0" * 40}, repository)) == []
    assert list(differences({"PRE_COMMIT_TO_REF": "HEAD"}, tmp_path_factory.mktemp("plain"))) == []
