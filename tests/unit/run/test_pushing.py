"""What is pushed compared with what a hook verifies, in real repositories."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from harness.repositories import git

from export_gate.config import load_config
from export_gate.run.ignored import _matches, nothing_to_verify
from export_gate.run.pushing import find_push


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
    """A push of what is checked out prints nothing, under any name."""
    for name in (git(repository, "rev-parse", "HEAD"), "refs/heads/main", "HEAD"):
        assert said({"PRE_COMMIT_TO_REF": name}, repository) == []


@pytest.mark.parametrize("variable", ["PRE_COMMIT_TO_REF", "PRE_COMMIT_LOCAL_BRANCH"])
def test_push_of_another_commit_is_said(repository: Path, variable: str):
    """The note says which commit is pushed, which is verified, and what to do; also if the whole history is pushed."""
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


def test_what_only_this_machine_ignores_is_not_pushed_either(repository: Path):
    """A model that reads it works here alone; a file of `.gitignore` is known to be left out."""
    (repository / ".git" / "info").mkdir(exist_ok=True)
    (repository / ".git" / "info" / "exclude").write_text("helper.py\n")
    (repository / ".gitignore").write_text("cached.bin\n")
    git(repository, "add", ".gitignore")
    git(repository, "commit", "--quiet", "--message", "ignore")
    for name in ("helper.py", "cached.bin"):
        (repository / name).touch()

    push = find_push({"PRE_COMMIT_TO_REF": "HEAD"}, repository)

    assert (push.notes, push.unpushed) == ((), {"helper.py": "untracked"})


def test_each_file_that_is_not_pushed_as_it_is_has_its_reason(repository: Path):
    """The comparison is with the pushed commit, which may not be HEAD and ignores what its own .gitignore says."""
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
        "new folder": "untracked",
        "run.log": "untracked",
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
    ("pattern", "path", "matches"),
    [
        ("docs/", "docs/deep/page.md", True),
        ("docs/", "nets/docs/page.md", False),
        ("docs/", "docs", False),
        ("/docs/**", "docs/page.md", True),
        ("/a.md", "a.md", True),
        ("/a.md", "docs/a.md", False),
        ("a.md", "docs/a.md", True),
        ("/", "a.md", False),
    ],
)
def test_slashes_of_a_pattern_mean_what_they_mean_to_git(pattern: str, path: str, matches: bool):
    """One at the end stands for what is in the folder, and one at the start for the root."""
    assert _matches(pattern, path) == matches


@pytest.mark.slow
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
    """Every changed file must match; the config and its lock never do."""
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
    """A rename is also a removal."""
    (repository / "export-gate.yml").write_text(CONFIG)
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", "config")
    git(repository, "mv", "weights.bin", "weights.md")
    git(repository, "commit", "--quiet", "--message", "files")
    config = load_config(repository / "export-gate.yml")

    assert nothing_to_verify(config, {"PRE_COMMIT_FROM_REF": "HEAD^", "PRE_COMMIT_TO_REF": "HEAD"}) is None


def pushed_config(repository: Path, text: str = CONFIG) -> None:
    """A config in a commit of its own."""
    (repository / "export-gate.yml").write_text(text)
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", "config")


def is_idle(repository: Path, name: str = "export-gate.yml") -> bool:
    """Whether a push of the last commit needs no verification."""
    config = load_config(repository / name)
    return nothing_to_verify(config, {"PRE_COMMIT_FROM_REF": "HEAD^", "PRE_COMMIT_TO_REF": "HEAD"}) is not None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keys", "changed"),
    [
        ("targets: {onnx: {artifact: dist/model.onnx}}", "dist/model.onnx"),
        ("targets: {onnx: {artifact: dist/model.onnx}}", "dist/model.onnx.data"),
        ("controls: {data: [{path: dist/images}]}", "dist/images/1.png"),
        ("controls: {golden: [{path: dist/golden.npz}]}", "dist/golden.npz"),
        ('controls: {function: "dist/cases.py:cases"}', "dist/cases.py"),
        ('controls: {make: "dist/cases.py:cases"}', "dist/cases.py"),
        ("env: {CKPT: dist/a.pt}", "dist/a.pt"),
        ("kwargs: {weights: [dist/a.pt]}", "dist/a.pt"),
        (f"kwargs: {{weights: [linked/a.pt, {'x' * 300}]}}", "dist/a.pt"),
    ],
)
def test_no_pattern_covers_a_file_that_the_config_names(repository: Path, keys: str, changed: str):
    """The model reads such a file, whatever `ignore` says."""
    text = CONFIG.replace("docs/**", "dist/**").replace("shape: [2]}}}", f"shape: [2]}}}}, {keys}}}")
    for name in ("dist/images/0.png", "dist/golden.npz", "dist/model.onnx", "dist/other.txt"):
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text("one")
    (repository / "linked").symlink_to("dist")
    pushed_config(repository, text)
    (repository / "dist" / "other.txt").write_text("two")
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", "files")
    assert is_idle(repository)
    (repository / changed).write_text("two")
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", "files")

    assert not is_idle(repository)


def test_no_pattern_covers_anything_where_a_model_reads_the_whole_checkout(repository: Path):
    """The folder of a config in the root is `.`, which no path begins with."""
    pushed_config(repository, CONFIG.replace("shape: [2]}}}", "shape: [2]}}, paths: [.]}"))
    (repository / "README.md").write_text("two")
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", "files")

    assert not is_idle(repository)


@pytest.mark.parametrize("is_staged", [False, True])
def test_patterns_that_are_not_pushed_cover_nothing(repository: Path, is_staged: bool):
    """Only the config in the pushed commit says what no model reads."""
    pushed_config(repository)
    (repository / "model.py").write_text("three")
    git(repository, "commit", "--quiet", "--all", "--message", "files")
    (repository / "export-gate.yml").write_text(CONFIG.replace("docs/**", "**"))
    if is_staged:
        git(repository, "add", "--all")

    assert not is_idle(repository)


def test_patterns_of_a_config_that_git_does_not_have_cover_nothing(repository: Path):
    """Nobody else can see what such a config ignores."""
    (repository / ".gitignore").write_text("own.yml\n")
    pushed_config(repository)
    (repository / "README.md").write_text("three")
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", "files")
    (repository / "own.yml").write_text(CONFIG)

    assert is_idle(repository)
    assert not is_idle(repository, "own.yml")


def test_settings_of_git_hide_no_change(repository: Path):
    """A push of a submodule, and one from a folder whose diffs are relative, lists what it changes."""
    (repository / "nets").mkdir()
    (repository / "nets" / "export-gate.yml").write_text(CONFIG)
    with_submodule(repository, "lib")
    git(repository / "lib", "commit", "--quiet", "--allow-empty", "--message", "two")
    (repository / "nets" / "README.md").write_text("x")
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", "files")
    git(repository, "config", "diff.relative", "true")

    assert not is_idle(repository, "nets/export-gate.yml")


def with_submodule(repository: Path, name: str) -> None:
    """A commit with a submodule, of which git is told to show nothing."""
    inner = repository / name
    inner.mkdir()
    git(inner, "init", "--quiet", "--initial-branch=main")
    (inner / "net.py").write_text("one")
    git(inner, "add", "--all")
    git(inner, "commit", "--quiet", "--message", "one")
    (repository / ".gitmodules").write_text(
        f'[submodule "{name}"]\n\tpath = {name}\n\turl = ./{name}\n\tignore = all\n'
    )
    git(repository, "add", "--force", "--all")
    git(repository, "commit", "--quiet", "--message", "submodule")


@pytest.mark.slow
def test_a_submodule_that_is_not_at_its_commit_is_not_pushed(repository: Path):
    """Others get the recorded commit, whatever git is told to hide."""
    with_submodule(repository, "lib")
    push = {"PRE_COMMIT_TO_REF": "HEAD"}
    assert find_push(push, repository).unpushed == {}

    (repository / "lib" / "helper.py").write_text("x")
    assert find_push(push, repository).unpushed == {"lib/helper.py": "untracked"}

    git(repository / "lib", "add", "--all")
    git(repository / "lib", "commit", "--quiet", "--message", "two")
    assert find_push(push, repository).unpushed == {"lib": "not committed"}


def test_a_repository_that_was_cloned_into_this_one_is_untracked(repository: Path):
    """Git lists the repository as one folder."""
    (repository / "vendored").mkdir()
    git(repository / "vendored", "init", "--quiet")
    (repository / "vendored" / "net.py").write_text("x")

    push = find_push({"PRE_COMMIT_TO_REF": "HEAD"}, repository)

    assert push.unpushed == {"vendored": "untracked"}


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_a_change_that_git_is_told_not_to_see_is_not_pushed(repository: Path, flag: str):
    """The file is verified as it is, whatever git was told about it."""
    git(repository, "update-index", flag, "model.py", "weights.bin")
    (repository / "model.py").write_text("three")

    push = find_push({"PRE_COMMIT_TO_REF": "HEAD"}, repository)

    assert push.unpushed == {"model.py": "not committed"}
    assert push.notes == ("the check includes uncommitted changes that will not be pushed: model.py",)


@pytest.mark.slow
def test_a_config_in_a_submodule_is_pushed_with_the_commit_that_records_it(repository: Path):
    """Names are from the root of the submodule, as those of the files that a model reads."""
    with_submodule(repository, "lib")
    inner = repository / "lib"
    push = {"PRE_COMMIT_TO_REF": git(repository, "rev-parse", "HEAD")}
    assert find_push(push, inner) == find_push(push, repository)
    (repository / "model.py").write_text("three")
    (inner / "net.py").write_text("two")
    (inner / "helper.py").write_text("two")

    (repository / "around.py").write_text("two")
    unpushed = {"net.py": "not committed", "helper.py": "untracked"}
    unpushed |= {"../model.py": "not committed", "../around.py": "untracked"}

    assert find_push(push, inner).unpushed == unpushed
    git(inner, "commit", "--quiet", "--all", "--message", "two")
    assert find_push(push, inner).unpushed == unpushed
    git(repository, "rm", "--quiet", "--cached", "lib")
    git(repository, "commit", "--quiet", "--message", "none")
    push = {"PRE_COMMIT_TO_REF": git(repository, "rev-parse", "HEAD")}
    assert find_push(push, inner).unpushed == {".": "untracked"}


@pytest.mark.parametrize("how", ["text", "eol=lf", "text eol=crlf"])
def test_a_binary_file_that_git_takes_for_a_text_is_not_pushed_as_it_is(repository: Path, how: str):
    """Git stores other line ends without a word, and shows no difference from then on."""
    (repository / ".gitattributes").write_text(f"*.bin {how}\n*.py {how}\n")
    (repository / "weights.bin").write_bytes(b"\0one\r\ntwo\n")
    (repository / "plain.bin").write_bytes(b"\0one")
    (repository / "model.py").write_bytes(b"one\r\ntwo\r\n")
    git(repository, "-c", "core.safecrlf=false", "add", "--all")
    git(repository, "commit", "--quiet", "--message", "binary")

    assert find_push({"PRE_COMMIT_TO_REF": "HEAD"}, repository).unpushed == {"weights.bin": "not committed"}


@pytest.mark.slow
def test_a_submodule_whose_commit_is_only_here_is_said(repository: Path, tmp_path_factory: pytest.TempPathFactory):
    """The push records it, and nobody else can check it out."""
    with_submodule(repository, "lib")
    push, inner, remote = {"PRE_COMMIT_TO_REF": "HEAD"}, repository / "lib", tmp_path_factory.mktemp("remote")
    assert said(push, repository) == []  # it has no remote
    git(remote, "init", "--quiet", "--bare")
    git(inner, "remote", "add", "origin", str(remote))
    git(inner, "push", "--quiet", "origin", "main")
    assert said(push, repository) == []
    git(inner, "commit", "--quiet", "--allow-empty", "--message", "two")
    git(repository, "add", "--force", "lib")
    git(repository, "commit", "--quiet", "--message", "two")

    assert said(push, repository) == [
        "the pushed commit records one of a submodule that its remote is not known to have: lib"
    ]


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_a_hidden_change_in_a_submodule_is_not_pushed(repository: Path, flag: str):
    """Git looks as little at it as at one of the repository itself."""
    with_submodule(repository, "lib")
    git(repository / "lib", "update-index", flag, "net.py")
    (repository / "lib" / "net.py").write_text("two")

    assert find_push({"PRE_COMMIT_TO_REF": "HEAD"}, repository).unpushed == {"lib/net.py": "not committed"}


def test_variables_of_a_hook_name_no_other_repository(repository: Path, monkeypatch: pytest.MonkeyPatch):
    """In a linked worktree git sets GIT_DIR, with which every folder looks like the root of one."""
    (repository / "nets").mkdir()
    (repository / "helper.py").touch()
    monkeypatch.setenv("GIT_DIR", git(repository, "rev-parse", "--absolute-git-dir"))

    assert find_push({"PRE_COMMIT_TO_REF": "HEAD"}, repository / "nets").unpushed == {"helper.py": "untracked"}


WORKFLOW = "on: push\njobs: {gate: {steps: [{uses: acme/export-gate@v1}]}, lint: {steps: [{run: lint}]}}\n"
HOOKS = "repos: [{repo: https://example.invalid/export-gate, rev: v1, hooks: [{id: export-gate, args: []}]}]\n"


@pytest.mark.parametrize(
    ("name", "old", "new", "idle"),
    [
        (".github/workflows/ci.yml", "run: lint", "run: test", True),
        (".github/workflows/ci.yml", "@v1}", "@v1, with: {models: tiny}}", False),
        (".pre-commit-config.yaml", "args: []", "args: []}, {id: other", True),
        (".pre-commit-config.yaml", "args: []", "args: [--target, pt2]", False),
        ("tools/python", "one", "two", False),
        ("nets/main.yml", "[2]", "[3]", False),
    ],
)
def test_no_pattern_covers_what_loosens_the_check(repository: Path, name: str, old: str, new: str, idle: bool):
    """A workflow, a hook, an interpreter, and the config that the one of the usual name is a link to."""
    config = CONFIG.replace('"docs/**"', '"**"').replace("models:", "python: tools/python\nmodels:")
    place = "nets/main.yml" if name == "nets/main.yml" else "export-gate.yml"
    files = {
        ".github/workflows/ci.yml": WORKFLOW,
        ".pre-commit-config.yaml": HOOKS,
        "tools/python": "one",
        place: config,
    }
    for file, text in files.items():
        (repository / file).parent.mkdir(parents=True, exist_ok=True)
        (repository / file).write_text(text)
    if place == name:
        (repository / "export-gate.yml").symlink_to(place)
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", "config")
    path = repository / name
    path.write_text(path.read_text().replace(old, new))
    git(repository, "commit", "--quiet", "--all", "--message", "files")

    assert is_idle(repository) == idle


def ignores_itself(root: Path) -> None:
    """A folder that nobody else gets, as caches have it."""
    (root / "lib").mkdir()
    (root / "lib" / ".gitignore").write_text("*\n")
    (root / "lib" / "net.py").touch()


def is_ignored_here(root: Path) -> None:
    """A pattern that is not committed."""
    (root / ".gitignore").write_text("lib\n.gitignore\n")
    (root / "lib").touch()


def reports_no_change(root: Path) -> None:
    """A program that git asks which files have changed."""
    monitor = root / ".git" / "monitor"
    monitor.write_text('#!/bin/sh\nprintf "token\\0"\n')
    monitor.chmod(0o755)
    git(root, "config", "core.fsmonitor", ".git/monitor")
    git(root, "update-index", "--fsmonitor")
    git(root, "status")
    (root / "lib").write_text("two")


def looks_the_same(root: Path) -> None:
    """A change that a filter takes back when git looks."""
    (root / ".git" / "info").mkdir(exist_ok=True)
    (root / ".git" / "info" / "attributes").write_text("lib filter=own\n")
    git(root, "config", "filter.own.clean", "printf 'one $Id$'")
    (root / "lib").write_text("two")


def shows_nothing(root: Path) -> None:
    """Settings with which a diff is empty, or fails."""
    git(root, "config", "diff.external", "true")
    git(root, "config", "diff.orderFile", "missing")
    (root / "lib").write_text("two")


def has_a_keyword(root: Path) -> None:
    """Any text in a keyword, for which git stores none."""
    (root / ".git" / "info").mkdir(exist_ok=True)
    (root / ".git" / "info" / "attributes").write_text("lib ident\n")
    git(root, "checkout", "--quiet", "lib")
    (root / "lib").write_text("one $Id: two $")


def is_encoded(root: Path) -> None:
    """Other bytes that mean the same in the encoding that the file is said to have."""
    (root / ".git" / "info").mkdir(exist_ok=True)
    (root / ".git" / "info" / "attributes").write_text("lib working-tree-encoding=UTF-7\n")
    (root / "lib").write_text("+AG8-ne +ACQ-Id+ACQ-")


def stands_for_a_link(root: Path) -> None:
    """A file that has the path of a link."""
    git(root, "config", "core.symlinks", "false")
    git(root, "rm", "--quiet", "lib")
    (root / "lib").symlink_to("model.py")
    git(root, "-c", "core.symlinks=true", "add", "lib")
    git(root, "commit", "--quiet", "--message", "link")
    (root / "lib").unlink()
    (root / "lib").write_text("model.py")


def has_another_case(root: Path) -> None:
    """A file that git takes for a committed one."""
    (root / "LIB").touch()
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "lib")
    git(root, "config", "core.ignoreCase", "true")
    (root / "lib").touch()


@pytest.mark.parametrize(
    ("hide", "has_file"),
    [(ignores_itself, False), (is_ignored_here, False), (has_another_case, False)]
    + [(hide, True) for hide in (reports_no_change, looks_the_same, shows_nothing)]
    + [(hide, True) for hide in (has_a_keyword, is_encoded, stands_for_a_link)],
)
def test_no_setting_hides_what_is_not_pushed(repository: Path, hide: Callable[[Path], None], has_file: bool):
    """Others have neither the settings nor the files."""
    if has_file:
        (repository / "lib").write_text("one $Id$")
        git(repository, "add", "--all")
        git(repository, "commit", "--quiet", "--message", "lib")
    hide(repository)

    assert "lib" in find_push({"PRE_COMMIT_TO_REF": "HEAD"}, repository).unpushed


def test_a_checkout_whose_files_git_looks_for_elsewhere_is_not_pushed(
    repository: Path, tmp_path_factory: pytest.TempPathFactory
):
    """With `core.worktree`, it compares a copy while the files of the checkout are verified."""
    copy = tmp_path_factory.mktemp("copy")
    for file in repository.iterdir():
        if file.is_file():
            (copy / file.name).write_bytes(file.read_bytes())
    assert find_push({"PRE_COMMIT_TO_REF": "HEAD"}, repository).unpushed == {}
    git(repository, "config", "core.worktree", str(copy))
    (repository / "model.py").write_text("two")

    assert find_push({"PRE_COMMIT_TO_REF": "HEAD"}, repository).unpushed == {".": "git looks at another folder"}


def test_a_comparison_that_fails_is_no_push_without_differences(repository: Path):
    """Nothing listed would look like nothing changed."""
    git(repository, "config", "core.bare", "true")

    push = find_push({"PRE_COMMIT_TO_REF": "HEAD"}, repository)

    assert push.notes == (f"what is pushed cannot be compared: git diff failed in {repository}",)
    assert push.unpushed == {".": "git cannot tell"}


def test_the_old_digest_in_a_keyword_is_no_difference(repository: Path):
    """A commit does not write the new one into the file; a checkout does."""
    (repository / ".gitattributes").write_text("lib ident\n")
    (repository / "lib").write_text(f"$Id: {'a' * 40} $")
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", "keyword")

    assert find_push({"PRE_COMMIT_TO_REF": "HEAD"}, repository).unpushed == {}


@pytest.mark.parametrize("inside", [False, True])
def test_links_to_what_is_not_pushed_are_said(repository: Path, tmp_path_factory: pytest.TempPathFactory, inside: bool):
    """Others get the link alone, from which nothing can be read there."""
    helper = (repository / ".git" if inside else tmp_path_factory.mktemp("elsewhere")) / "helper.py"
    helper.write_text("x")
    (repository / "helper.py").symlink_to(helper)
    (repository / "same.py").symlink_to("model.py")
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", "links")

    assert said({"PRE_COMMIT_TO_REF": "HEAD"}, repository) == [
        "the check follows links to what will not be pushed: helper.py"
    ]


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_files_that_are_not_checked_out_are_said(repository: Path, flag: str):
    """In a sparse checkout the commit has more than what was verified."""
    git(repository, "update-index", flag, "model.py")
    (repository / "model.py").unlink()

    assert said({"PRE_COMMIT_TO_REF": "HEAD"}, repository) == [
        "the check has no files that are not checked out: model.py"
    ]
