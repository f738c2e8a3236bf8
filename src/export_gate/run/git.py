"""Run git in the one way in which the gate does: it never prompts, and a failure is None."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

LIMIT_S = 60.0
"""Time limit of one command, in seconds."""


def git_output(folder: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> bytes | None:
    """What git prints in that folder, or None if it fails.

    Objects are read as they were committed: replacement refs (`refs/replace/`), which may be fetched, do not count.
    """
    try:
        answer = subprocess.run(
            ["git", "--no-replace-objects", *arguments],
            cwd=folder,
            env={**(os.environ if environment is None else environment), "GIT_TERMINAL_PROMPT": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LIMIT_S,
            check=False,
        )
    # ValueError: an argument contains a NUL byte.
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return answer.stdout if answer.returncode == 0 else None


def git_line(folder: Path, *arguments: str) -> str | None:
    """The one line that git prints, or None if it fails or prints nothing."""
    answer = git_output(folder, *arguments)
    return os.fsdecode(answer).strip() or None if answer else None


def git_paths(
    folder: Path, command: str, *arguments: str, environment: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    """The paths that a command of git lists; none if it fails."""
    # `-z`, since git otherwise quotes and escapes unusual names.
    answer = git_output(folder, command, "-z", *arguments, environment=environment)
    return tuple(path for path in os.fsdecode(answer or b"").split("\0") if path)
