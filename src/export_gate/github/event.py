"""Read the few facts that we use from the event file, and check each: an untrusted pull request can influence them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from export_gate.github.marker import Run

LARGEST_EVENT_BYTES = 32 * 1024 * 1024
"""GitHub's own limit for a payload is 25 MB."""
LONGEST_NAME = 300
_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.ASCII)
REPOSITORY = re.compile(r"[A-Za-z0-9._-]{1,100}/[A-Za-z0-9._-]{1,100}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequest:
    """A pull request."""

    number: int
    head: str
    """The newest commit of its branch."""
    head_repository: str | None = None
    """`owner/name`; None if the fork was deleted."""
    is_open: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Triggering:
    """The run that triggered a `workflow_run` event."""

    run: Run
    event: str
    head: str
    branch: str
    repository: str | None
    """The repository of that branch: for a fork, the fork."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """The facts in the event file."""

    problem: str = ""
    """Why there are no facts."""
    pull_request: PullRequest | None = None
    triggering: Triggering | None = None
    merge_group_head: str | None = None


def read_payload(path: Path | None) -> Payload:
    """The facts in the event file at `path`."""
    if path is None:
        return Payload(problem="GITHUB_EVENT_PATH is not set: the event is unknown")
    try:
        size = path.stat().st_size
        if size > LARGEST_EVENT_BYTES:
            return Payload(problem=f"the event file has {size} bytes, more than {LARGEST_EVENT_BYTES}: it was not read")
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        return Payload(problem=f"the event file cannot be read: {error.strerror or error}")
    except (ValueError, RecursionError):
        return Payload(problem="the event file is not JSON")
    if not isinstance(value, dict):
        return Payload(problem="the event file is not a JSON object")
    return Payload(
        pull_request=pull_request(value.get("pull_request")),
        triggering=_triggering(value.get("workflow_run")),
        merge_group_head=commit_sha(_at(value, "merge_group", "head_sha")),
    )


def pull_request(value: Any) -> PullRequest | None:
    """A pull request as events and the API describe it; None if its number or head is not usable."""
    number, head = _at(value, "number"), commit_sha(_at(value, "head", "sha"))
    if not _is_id(number) or head is None:
        return None
    return PullRequest(
        number=number,
        head=head,
        head_repository=_repository(_at(value, "head", "repo", "full_name")),
        is_open=_at(value, "state") != "closed",
    )


def _triggering(value: Any) -> Triggering | None:
    run, attempt, head = _at(value, "id"), _at(value, "run_attempt"), commit_sha(_at(value, "head_sha"))
    branch, event = _at(value, "head_branch"), _at(value, "event")
    are_names = all(isinstance(text, str) and 0 < len(text) <= LONGEST_NAME for text in (branch, event))
    if not _is_id(run) or head is None or not are_names:
        return None
    return Triggering(
        run=Run(id=run, attempt=attempt if _is_id(attempt) else 1),
        event=event,
        head=head,
        branch=branch,
        repository=_repository(_at(value, "head_repository", "full_name")),
    )


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _is_id(value: Any) -> bool:
    # True is an int in Python.
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**18


def commit_sha(value: Any) -> str | None:
    """The text, if it is the full name of a commit."""
    return value if isinstance(value, str) and _SHA.fullmatch(value) else None


def _repository(value: Any) -> str | None:
    return value if isinstance(value, str) and REPOSITORY.fullmatch(value) else None
