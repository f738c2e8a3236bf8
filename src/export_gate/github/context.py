"""Read the context from the runner's environment: the event, the commit, the pull request, the run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from export_gate.github.event import REPOSITORY, Payload, PullRequest, Triggering, commit_sha, read_payload
from export_gate.github.marker import Run

PUBLIC_API = "https://api.github.com"
PUBLIC_SERVER = "https://github.com"
PULL_REQUEST_EVENTS = ("pull_request", "pull_request_target")
_URL = re.compile(r"https?://[A-Za-z0-9.\[\]:_-]+(?:/[A-Za-z0-9._~/-]*)?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What is known about the workflow run. The token is not part of it."""

    event: str = ""
    repository: str = ""
    """`owner/name`; empty outside GitHub."""
    api_url: str = PUBLIC_API
    server_url: str = PUBLIC_SERVER
    run: Run = field(default_factory=Run)
    head: str | None = None
    """The commit that was pushed: for a pull request its head, not GitHub's test merge."""
    pull_request: PullRequest | None = None
    triggering: Triggering | None = None
    """Under `workflow_run`: the run whose results are to be published."""
    actor: str = ""
    summary: Path | None = None
    output: Path | None = None
    problems: tuple[str, ...] = ()
    """Parts of the environment that cannot be used, one sentence each."""

    @property
    def run_url(self) -> str:
        """The page of this run; empty if unknown."""
        if not self.repository or not self.run.id:
            return ""
        return f"{self.server_url}/{self.repository}/actions/runs/{self.run.id}"

    @property
    def has_reading_token(self) -> bool:
        """Whether GitHub gives this run a token that cannot write: for a fork's pull request, and for Dependabot's."""
        pull = self.pull_request
        is_fork = pull is not None and pull.head_repository != self.repository
        return is_fork or self.actor == "dependabot[bot]"


def read_context(environ: Mapping[str, str]) -> Context:
    """The context of this process. A missing or malformed value becomes a problem to report, never an exception."""
    found = Context(
        event=environ.get("GITHUB_EVENT_NAME", ""),
        run=Run(id=_number(environ.get("GITHUB_RUN_ID")), attempt=_number(environ.get("GITHUB_RUN_ATTEMPT"))),
        head=commit_sha(environ.get("GITHUB_SHA")),
        actor=environ.get("GITHUB_ACTOR", ""),
        summary=_path(environ.get("GITHUB_STEP_SUMMARY")),
        output=_path(environ.get("GITHUB_OUTPUT")),
    )
    return _with_event(_with_addresses(found, environ), environ)


def _with_addresses(context: Context, environ: Mapping[str, str]) -> Context:
    asked = {
        "repository": ("GITHUB_REPOSITORY", REPOSITORY, "owner/name"),
        "api_url": ("GITHUB_API_URL", _URL, "a URL"),
        "server_url": ("GITHUB_SERVER_URL", _URL, "a URL"),
    }
    found: dict[str, str] = {}
    problems = []
    for name, (variable, form, expected) in asked.items():
        text = environ.get(variable, "").rstrip("/")
        if form.fullmatch(text):
            found[name] = text
        elif text:
            problems.append(f"{variable}: expected {expected}, got {text!r:.80}")
    if any(problem.startswith("GITHUB_API_URL") for problem in problems):
        found.pop("repository", None)  # never send the token to a host that was not intended
    return replace(context, problems=(*context.problems, *problems), **found)  # type: ignore[arg-type] # all are strings


def _with_event(context: Context, environ: Mapping[str, str]) -> Context:
    if context.event not in (*PULL_REQUEST_EVENTS, "merge_group", "workflow_run"):
        return context
    payload = read_payload(_path(environ.get("GITHUB_EVENT_PATH")))
    problem = payload.problem or _absent(context.event, payload)
    if problem:
        return replace(context, problems=(*context.problems, problem))
    pull = payload.pull_request if context.event in PULL_REQUEST_EVENTS else None
    triggering = payload.triggering if context.event == "workflow_run" else None
    # GITHUB_SHA is the test merge under `pull_request`, and the default branch's head under `workflow_run`.
    known: list[str | None] = [pull.head if pull else None, triggering.head if triggering else None]
    known.append(payload.merge_group_head if context.event == "merge_group" else None)
    return replace(
        context,
        pull_request=pull,
        triggering=triggering,
        head=next(filter(None, known), context.head),
    )


def _absent(event: str, payload: Payload) -> str:
    if event in PULL_REQUEST_EVENTS and payload.pull_request is None:
        return "the event file has no usable `pull_request`: its number and head commit are unknown"
    if event == "workflow_run" and payload.triggering is None:
        return "the event file has no usable `workflow_run`: the run to report on is unknown"
    return ""


def _number(text: Any) -> int:
    return int(text) if isinstance(text, str) and re.fullmatch(r"[0-9]{1,18}", text, re.ASCII) else 0


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None
