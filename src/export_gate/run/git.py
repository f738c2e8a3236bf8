"""Run git in the one way in which the gate does: it never prompts, and no setting hides a change."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

LIMIT_S = 60.0
"""Time limit of one command, in seconds."""
ELSEWHERE = frozenset({
    "GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_GRAFT_FILE", "GIT_SHALLOW_FILE", "GIT_PREFIX", "GIT_LITERAL_PATHSPECS",
    "GIT_GLOB_PATHSPECS", "GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS", "GIT_EXTERNAL_DIFF", "GIT_DIFF_OPTS",
    "GIT_ATTR_SOURCE",
})  # fmt: skip
"""Variables that make git look at another repository than the one around the folder, or read arguments otherwise.

A hook gets some of them, which are wrong for submodules, and a workflow may set them to hide the base.
"""
OPTIONS = (
    # Objects are read as they were committed: replacement refs (`refs/replace/`), which may be fetched, do not count.
    "--no-replace-objects",
    # A folder with the files of a bare repository is not one: a change could bring it, with settings that run commands.
    *("-c", "safe.bareRepository=explicit"),
    # Files are looked at themselves, not at what a program says about them, and by all that the system tells.
    *("-c", "core.fsmonitor=false", "-c", "core.trustctime=true", "-c", "core.checkStat=default"),
    # Python and other systems tell `Net.py` from `net.py`: the one is not there because the other is committed.
    *("-c", "core.ignoreCase=false"),
    # What users may set for `git grep`: it would stop at `--untracked`, colour paths, or take a pattern literally.
    *("-c", "submodule.recurse=false", "-c", "color.grep=false", "-c", "grep.patternType=default"),
)
NO_MATCH = ("grep", "check-ignore")
"""Commands that end with 1 if nothing matches."""


class UnreadableError(Exception):
    """Git cannot read what was asked for: the base is not a commit here, or a command failed."""


def git_output(folder: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> bytes | None:
    """What git prints in that folder, or None if it fails."""
    answer = _run(folder, arguments, environment, b"")
    return answer.stdout if answer is not None and answer.returncode == 0 else None


def is_distrusted(folder: Path, environment: Mapping[str, str]) -> bool:
    """Whether git refuses the repository because another user owns it, as in a workflow's container."""
    answer = _run(folder, ("rev-parse",), environment, b"")
    # Its message ends with a command that sets this, in any language.
    return answer is not None and b"safe.directory" in answer.stderr


@contextmanager
def each_question_once() -> Iterator[None]:
    """Inside, git is started once for the same question: that takes longer than what it answers."""
    token = _ANSWERS.set({})
    try:
        yield
    finally:
        _ANSWERS.reset(token)


_Answer = subprocess.CompletedProcess[bytes] | None
_ANSWERS: ContextVar[dict[object, _Answer] | None] = ContextVar("answers", default=None)


def _run(folder: Path, arguments: Sequence[str], environment: Mapping[str, str] | None, given: bytes) -> _Answer:
    # In a partial clone, git fetches objects that it lacks, and would ask for a password.
    variables = {**_own(os.environ if environment is None else environment), "GIT_TERMINAL_PROMPT": "0"}
    answers = _ANSWERS.get()
    if answers is None:
        return _ask(folder, arguments, variables, given)
    question = (folder, tuple(arguments), tuple(variables.items()), given)
    if question not in answers:
        answers[question] = _ask(folder, arguments, variables, given)
    return answers[question]


def _ask(folder: Path, arguments: Sequence[str], variables: Mapping[str, str], given: bytes) -> _Answer:
    try:
        return subprocess.run(
            [_program(os.name, variables.get("PATH", "")), *OPTIONS, *arguments],
            cwd=folder,
            env=variables,
            input=given,
            capture_output=True,
            timeout=LIMIT_S,
            check=False,
        )
    # ValueError: an argument contains a NUL byte.
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None


def _program(system: str, path: str) -> str:
    """Git, on Windows by its place: a program is searched in the current folder first there, which the change fills."""
    if system != "nt":
        return "git"
    places = (Path(folder) / "git.exe" for folder in path.split(os.pathsep) if Path(folder).is_absolute())
    return str(next((place for place in places if place.is_file()), Path(os.path.abspath(os.devnull), "git.exe")))  # noqa: PTH100


def _own(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name not in ELSEWHERE}


def git_line(folder: Path, *arguments: str) -> str | None:
    """The one line that git prints, or None if it fails or prints nothing."""
    answer = git_output(folder, *arguments)
    return os.fsdecode(answer).strip() or None if answer else None


def git_paths(
    folder: Path, command: str, *arguments: str, environment: Mapping[str, str] | None = None, given: Iterable[str] = ()
) -> tuple[str, ...]:
    """The paths that a command of git lists.

    Raises:
        UnreadableError: it fails. No paths would mean that nothing has changed.
    """
    # `-z`, since git otherwise quotes and escapes unusual names.
    lines = os.fsencode("".join(f"{path}\0" for path in given))
    answer = _run(folder, (command, "-z", *arguments), environment, lines)
    if answer is None or answer.returncode > (1 if command in NO_MATCH else 0) or answer.returncode < 0:
        raise UnreadableError(f"git {command} failed in {folder}")
    return tuple(path for path in os.fsdecode(answer.stdout).split("\0") if path)
