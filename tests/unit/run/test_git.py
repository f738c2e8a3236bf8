"""How the gate asks git."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from export_gate.run.git import _program, each_question_once, git_line, git_output, git_paths


def test_inside_the_block_a_question_is_asked_once(tmp_path: Path):
    """The second answer is the first one, until the block ends; another question, or the same elsewhere, is asked."""
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    (tmp_path / "inner").mkdir()
    others = ("ls-files", "--others")
    with each_question_once():
        assert git_paths(tmp_path, *others) == ()
        (tmp_path / "new.py").write_text("")
        assert git_paths(tmp_path, *others) == ()
        assert git_paths(tmp_path, *others, "--exclude-standard") == ("new.py",)
        assert git_line(tmp_path / "inner", "rev-parse", "--show-prefix") == "inner/"
    assert git_paths(tmp_path, *others) == ("new.py",)


@pytest.mark.parametrize(
    "settings",
    [
        {"submodule.recurse": "true"},
        {"color.ui": "always", "color.grep": "always", "color.grep.filename": "red"},
        {"grep.patternType": "fixed"},
    ],
)
def test_no_setting_of_the_user_changes_what_grep_finds(tmp_path: Path, settings: dict[str, str]):
    """Paths are plain, files that are not tracked are searched too, and a pattern is one."""
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    for name, value in settings.items():
        subprocess.run(["git", "config", name, value], cwd=tmp_path, check=True)
    (tmp_path / "ci.yml").write_text("run: export-gate run\n")
    assert git_paths(tmp_path, "grep", "-l", "-e", "export[-_]gate", "--untracked") == ("ci.yml",)


def test_attributes_are_those_of_the_checkout(tmp_path: Path):
    """A variable could make git read them from another commit, in which they hide what has changed."""
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    (tmp_path / ".gitattributes").write_text("a text\n")

    found = git_output(tmp_path, "check-attr", "text", "a", environment={**os.environ, "GIT_ATTR_SOURCE": "0" * 40})

    assert found == b"a: text: set\n"


def test_git_is_never_the_one_of_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Windows would start a `git.exe` of the current folder, which a change can bring."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "git.exe").touch()
    (tmp_path / "bin" / "git.exe").touch()
    monkeypatch.chdir(tmp_path)

    assert _program("nt", os.pathsep.join(("", ".", str(tmp_path / "bin")))) == str(tmp_path / "bin" / "git.exe")
    assert not Path(_program("nt", os.pathsep.join(("", ".")))).exists()
    assert _program("posix", "") == "git"
