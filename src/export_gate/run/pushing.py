"""Compare what is pushed with what the pre-push hook verifies, which is the working tree."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

GIT_S = 30.0
"""Time limit of one git command, in seconds."""


def differences(environment: Mapping[str, str], folder: Path) -> Iterator[str]:
    """One line for each way in which the commit that is pushed differs from what is verified.

    Args:
        environment: where pre-commit says which commit is pushed; without that there is nothing to say.
        folder: a folder of the repository.
    """
    # A push that includes the first commit of the repository has no range, only the name of what is pushed.
    pushed = environment.get("PRE_COMMIT_TO_REF") or environment.get("PRE_COMMIT_LOCAL_BRANCH")
    if not pushed:
        return
    head, commit = _git(folder, "rev-parse", "HEAD^{commit}"), _git(folder, "rev-parse", f"{pushed}^{{commit}}")
    if head and commit and head != commit:
        yield (
            f"HEAD is not the commit that is pushed: {commit[:10]} is pushed, {head[:10]} is checked out and verified; "
            f"check out {commit[:10]} and run `export-gate run`, or leave that commit to the required check"
        )
    changed = (_git(folder, "diff", "--name-only", "HEAD", "--") or "").splitlines()
    if changed:
        rest = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        yield f"the check included uncommitted changes that will not be pushed: {changed[0]}{rest}"


def _git(folder: Path, *arguments: str) -> str | None:
    """The output of git, or None if it fails."""
    try:
        answer = subprocess.run(
            ["git", "-c", "core.quotePath=false", *arguments],
            cwd=folder,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=GIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None
