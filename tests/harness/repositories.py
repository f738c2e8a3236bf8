"""Git repositories and folders that tests share."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

AUTHOR = ("-c", "user.name=tester", "-c", "user.email=tester@example.invalid", "-c", "commit.gpgsign=false")


def git(folder: Path, *arguments: str) -> str:
    """What git prints; it must succeed."""
    done = subprocess.run(["git", *AUTHOR, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def commit(folder: Path, message: str = "change") -> str:
    """Commit everything; the commit's name."""
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--no-verify", "--message", message)
    return git(folder, "rev-parse", "HEAD")


def once(shared: Path, name: str, make: Callable[[Path], None]) -> Path:
    """The folder `name`, made by the first of the test processes that asks for it."""
    folder = shared / name
    with FileLock(shared / f"{name}.lock"):
        if not folder.exists():
            partial = shared / f"{name}.partial"
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            make(partial)
            partial.rename(folder)
    return folder
