"""Compare what is pushed with what the pre-push hook verifies, which is the working tree."""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from export_gate.run.base import Base, find_commit, within
from export_gate.run.git import UnreadableError, each_question_once, git_line, git_output, git_paths
from export_gate.run.scripts import SHELL_ENDINGS
from export_gate.run.untracked import all_untracked, shown_untracked, submodules, tracked
from export_gate.wall.errors import UserError
from export_gate.wall.repository import repository_root

DIFF = ("diff", "--no-ext-diff", "-O/dev/null", "--name-only", "--no-relative")
"""From the root of the checkout, whatever the user's settings of git say."""
STARTERS = (".github/*.yml", ".github/*.yaml", "*action.yml", "*action.yaml", ".pre-commit-config.yaml")
"""Workflows and hooks, which may start the gate: an action of the repository's own may be in any folder."""
BUILD_FILES = (
    "*Makefile", "*makefile", "*.mk", "*justfile", "*Justfile", "*Rakefile", "*Earthfile", "*noxfile.py", "*tasks.py",
    "*dodo.py", "*tox.ini", "*package.json", "*pyproject.toml", "*hatch.toml", "*pixi.toml", "*mise.toml",
    "*Taskfile.yml", "*Taskfile.yaml", "*lefthook.yml", "*Jenkinsfile", "*.gitlab-ci.yml", "*azure-pipelines.yml",
    "*.circleci/config.yml", "*bitbucket-pipelines.yml", "*.travis.yml", "*buildspec.yml", "*cloudbuild.yaml",
    "*.drone.yml", "*.woodpecker.yml", "*Taskfile.dist.yml", "*Taskfile.dist.yaml", "*compose.yml", "*compose.yaml",
    "*lefthook.yaml", "*fabfile.py", "*SConstruct", "*CMakeLists.txt", "*Snakefile", "*build.gradle",
    "*build.gradle.kts", "*BUILD.bazel", "*deno.json", "*devbox.json", "*Procfile", "*.envrc",
)  # fmt: skip
"""Other files in which some lines may be commands that start it."""
VERSIONS = (".python-version", ".tool-versions")
"""Files by which actions/setup-python, pyenv, uv, asdf and mise choose an interpreter."""
HOOKS_OF_GIT = ("*.husky/*", "*hooks/pre-commit", "*hooks/pre-push", "*hooks/pre-merge-commit")
SHELL_SCRIPTS = (*(f"*.{ending}" for ending in SHELL_ENDINGS), *HOOKS_OF_GIT)
SCRIPTS = (*SHELL_SCRIPTS, *BUILD_FILES)
"""With those that do nothing but what their lines say, one after the other."""
BEGINNING = 8000
"""Bytes by which git tells a binary file from a text."""
LINK = "120000"
"""The mode of a link."""
_KEYWORD = re.compile(rb"\$Id: [0-9a-f]{40,64} \$")
"""What `ident` puts into files; git takes any other text between the dollars for the same."""
WHOLE = "."
"""Stands for all files of a checkout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Push:
    """One push, as the hook finds it."""

    notes: tuple[str, ...] = ()
    """How what is verified differs from what is pushed."""
    unpushed: dict[str, str] = field(default_factory=dict)
    """What is not pushed as it is, from the root of the checkout -> `untracked` or `not committed`.

    A folder is a repository of its own: a submodule at another commit, or one that was cloned into this. `WHOLE` is
    the checkout itself, where the commit that is pushed is of a repository around it that has another commit of it.
    """


def find_push(environment: Mapping[str, str], folder: Path) -> Push:
    """The differences between the commit that is pushed and what is verified.

    Args:
        environment: where pre-commit says which commit is pushed; without that there is nothing to say.
        folder: a folder of the repository.
    """
    pushed = _pushed(environment)
    if not pushed:
        return Push()
    try:
        base = find_commit(pushed, folder, environment)
    except (UserError, UnreadableError):
        return Push(notes=(f"the commit that is pushed was not found: {pushed:.80}",))
    try:
        with each_question_once():
            return Push(notes=tuple(_notes(base)), unpushed=_unpushed(base, repository_root(folder), environment))
    except UnreadableError as error:
        return Push(notes=(f"what is pushed cannot be compared: {error}",), unpushed={WHOLE: "git cannot tell"})


def _notes(base: Base) -> Iterator[str]:
    head, commit = git_line(base.root, "rev-parse", "HEAD^{commit}"), base.commit
    if head != commit:
        yield (
            f"HEAD is not the commit that is pushed: {commit[:10]} is pushed, {(head or 'nothing')[:10]} is checked "
            f"out and verified; check out {commit[:10]} and run `export-gate run`, or leave that commit to the "
            "required check"
        )
    if changed := tuple(_differing(base.root, head or "HEAD")):
        yield f"the check includes uncommitted changes that will not be pushed: {few(changed)}"
    if untracked := shown_untracked(base.root):
        yield f"the check includes untracked files that will not be pushed: {few(untracked)}"
    absent = (path for tag, _, path in tracked(base.root) if _is_left_alone(tag))
    if missing := [path for path in absent if not os.path.lexists(base.root / path)]:
        yield f"the check has no files that are not checked out: {few(missing)}"
    if led_out := [path for _, mode, path in tracked(base.root) if mode == LINK and _leads_out(base.root, path)]:
        yield f"the check follows links to what will not be pushed: {few(led_out)}"
    if nowhere := [path for path in submodules(base.root) if _is_nowhere(base, path)]:
        yield f"the pushed commit records one of a submodule that its remote is not known to have: {few(nowhere)}"


def _is_left_alone(tag: str) -> bool:
    """Whether git was told not to look for changes of the file: `--skip-worktree`, `--assume-unchanged`."""
    return tag == "S" or tag.islower()


def _leads_out(root: Path, path: str) -> bool:
    """Whether a link leads to something outside of the checkout, or in git's own folder."""
    target, top = (root / path).resolve(), root.resolve()
    return target.exists() and (top not in target.parents or ".git" in target.relative_to(top).parts)


def _is_nowhere(base: Base, path: str) -> bool:
    """Whether the submodule has a remote, and its recorded commit is only here."""
    inner, sha = base.root / path, git_line(base.root, "rev-parse", "--verify", "--quiet", f"{base.commit}:{path}")
    known = ("for-each-ref", "--count=1", "refs/remotes", "refs/tags")
    return bool(sha and git_line(inner, *known[:3]) and git_output(inner, *known, "--contains", sha) == b"")


def _unpushed(base: Base, root: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Of the checkout `root`, which may be a submodule of the one that is pushed."""
    try:
        own = within(base, root / ".git", environment)
    except UnreadableError:
        return {WHOLE: "not committed"}
    if own.root != root:
        return {WHOLE: "untracked"}
    # By a setting (`core.worktree`), git compares the files of another folder.
    if (top := git_line(root, "rev-parse", "--show-toplevel")) and Path(top).resolve() != root.resolve():
        return {WHOLE: "git looks at another folder"}
    # Its code may read files of the checkout around it.
    around = _of_checkout(base.root, base.commit) if base.root != root else {}
    inside = root.relative_to(base.root).as_posix()
    return {
        os.path.relpath(base.root / path, root).replace(os.sep, "/"): why
        for path, why in around.items()
        if path != inside and not path.startswith(f"{inside}/")
    } | _of_checkout(root, own.commit)


def _of_checkout(root: Path, commit: str) -> dict[str, str]:
    differing = tuple(_differing(root, commit))
    untracked = all_untracked(root, differing)
    return {**dict.fromkeys(differing, "not committed"), **dict.fromkeys(untracked, "untracked")}


def _differing(root: Path, commit: str) -> Iterator[str]:
    """Tracked files that differ from the commit, also those whose changes git was told not to look for."""
    # Untracked files in submodules are left to `_untracked`, which names them.
    seen = git_paths(root, *DIFF, "--ignore-submodules=untracked", commit, "--")
    yield from seen
    flagged = (path for tag, _, path in tracked(root) if _is_left_alone(tag))
    for path in flagged:
        # hash-object applies the filters of `git add`, so line endings alone are not a difference.
        if (
            (root / path).is_file()
            and path not in seen
            and git_line(root, "hash-object", "--", path) != git_line(root, "rev-parse", f"{commit}:{path}")
        ):
            yield path
    # With `core.symlinks=false`, a file that has its path stands for a link, and a model reads that path in it.
    links = (path for _, mode, path in tracked(root) if mode == LINK and path not in seen)
    yield from (path for path in links if (root / path).is_file() and not (root / path).is_symlink())
    converted = dict.fromkeys((*_filtered(root), *_converted(root)))
    yield from (path for path in converted if path not in seen and not _is_as_checked_out(root, commit, path))
    for path in submodules(root):
        recorded = git_line(root, "rev-parse", f"{commit}:{path}") if path not in seen else None
        yield from (f"{path}/{name}" for name in (_differing(root / path, recorded) if recorded else ()))


def _filtered(root: Path) -> Iterator[str]:
    """Files with a filter, an encoding or a keyword of `.gitattributes`, where other bytes may be the same to git.

    Filters of LFS are none: git compares digests of the content, and a checkout may have to download it.
    """
    # `!filter` is where no line of .gitattributes says a filter; a list of exclusions alone starts from all files.
    yield from git_paths(root, "ls-files", "--", ":(exclude,attr:!filter)", ":(exclude,attr:filter=lfs)")
    yield from git_paths(root, "ls-files", "--", ":(exclude,attr:!working-tree-encoding)")
    yield from git_paths(root, "ls-files", "--", ":(attr:ident)")


def _converted(root: Path) -> Iterator[str]:
    """Files that `.gitattributes` calls text although they are none: git stores other line ends than they have."""
    for path in git_paths(root, "ls-files", "--", *(f":(attr:{how})" for how in ("text", "eol=lf", "eol=crlf"))):
        if (root / path).is_file():
            with (root / path).open("rb") as file:
                is_binary = b"\0" in file.read(BEGINNING)
            yield from [path] if is_binary else ()


def _is_as_checked_out(root: Path, commit: str, path: str) -> bool:
    place = root / path
    if not place.is_file():
        return True
    checked_out = git_output(root, "cat-file", "--filters", f"{commit}:{path}")
    # A commit does not write the new digest into the file, so after an edit it has the old one.
    here, there = (_KEYWORD.sub(b"$Id$", content) for content in (place.read_bytes(), checked_out or b""))
    return checked_out is not None and here == there


def _pushed(environment: Mapping[str, str]) -> str | None:
    # A push that includes the first commit of the repository has no range, only the name of what is pushed.
    return environment.get("PRE_COMMIT_TO_REF") or environment.get("PRE_COMMIT_LOCAL_BRANCH")


def few(paths: Sequence[str]) -> str:
    """The first path, and how many more there are."""
    return paths[0] + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")
