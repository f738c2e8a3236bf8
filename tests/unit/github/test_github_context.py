"""The environment of each event is read correctly, and a broken one is reported, never raised."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from github_server import pull
from hypothesis import given
from hypothesis import strategies as st

from export_gate.github import event as events
from export_gate.github.context import Context, read_context
from export_gate.github.event import PullRequest, Triggering, pull_request
from export_gate.github.marker import Run

MERGE, HEAD = "b" * 40, "a" * 40
ENVIRON = {
    "GITHUB_REPOSITORY": "acme/shop",
    "GITHUB_API_URL": "https://github.acme.example/api/v3",
    "GITHUB_SERVER_URL": "https://github.acme.example",
    "GITHUB_RUN_ID": "77",
    "GITHUB_RUN_ATTEMPT": "2",
    "GITHUB_SHA": MERGE,
}
TRIGGERING = {
    "id": 55,
    "run_attempt": 3,
    "event": "pull_request",
    "head_sha": HEAD,
    "head_branch": "fix/a",
    "head_repository": {"full_name": "stranger/shop"},
}
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)),
    max_leaves=8,
)


def read(tmp_path: Path, event: str, payload: Any, **environ: str) -> Context:
    """The context under an event file with that value."""
    path = tmp_path / "event.json"
    path.write_text(payload if isinstance(payload, str) else json.dumps(payload), encoding="utf-8")
    return read_context({**ENVIRON, "GITHUB_EVENT_NAME": event, "GITHUB_EVENT_PATH": str(path), **environ})


@pytest.mark.parametrize("event", ["pull_request", "pull_request_target"])
def test_a_pull_request_is_at_its_head(tmp_path: Path, event: str):
    """GITHUB_SHA is the merge that GitHub tests; people know the commit that they pushed."""
    context = read(tmp_path, event, {"pull_request": pull()})
    assert context.head == HEAD
    assert context.pull_request == PullRequest(number=7, head=HEAD, head_repository="stranger/shop")
    assert context.has_reading_token
    assert context.run == Run(id=77, attempt=2)
    assert context.run_url == "https://github.acme.example/acme/shop/actions/runs/77"
    assert context.problems == ()


def test_a_pull_request_of_the_repository_itself_can_be_commented_on(tmp_path: Path):
    """A pull request of the repository has a token that can write, but Dependabot's has not."""
    payload = {"pull_request": pull(repository="acme/shop")}
    assert not read(tmp_path, "pull_request", payload).has_reading_token
    assert read(tmp_path, "pull_request", payload, GITHUB_ACTOR="dependabot[bot]").has_reading_token


def test_a_deleted_fork(tmp_path: Path):
    """The repository of the branch may have been deleted."""
    payload = pull()
    payload["head"]["repo"] = None
    context = read(tmp_path, "pull_request", {"pull_request": payload})
    assert context.pull_request == PullRequest(number=7, head=HEAD)
    assert context.has_reading_token


def test_a_closed_pull_request(tmp_path: Path):
    """A closed pull request is known to be closed."""
    context = read(tmp_path, "pull_request", {"pull_request": {**pull(), "state": "closed"}})
    assert context.pull_request == PullRequest(number=7, head=HEAD, head_repository="stranger/shop", is_open=False)


def test_a_merge_group_is_at_its_head(tmp_path: Path):
    """The merge queue does not have a pull request of its own."""
    context = read(tmp_path, "merge_group", {"merge_group": {"head_sha": "c" * 40}})
    assert (context.head, context.pull_request, context.problems) == ("c" * 40, None, ())


@pytest.mark.parametrize("event", ["push", "release", "schedule", "workflow_dispatch", ""])
def test_other_events_are_at_github_sha(event: str):
    """Other events have no pull request, and their event file is not read."""
    context = read_context({**ENVIRON, "GITHUB_EVENT_NAME": event, "GITHUB_EVENT_PATH": "/nowhere"})
    assert (context.head, context.pull_request, context.problems) == (MERGE, None, ())


def test_a_workflow_run_is_about_another_run(tmp_path: Path):
    """Run, branch, commit and repository are those of the run that triggered it."""
    context = read(tmp_path, "workflow_run", {"workflow_run": TRIGGERING})
    assert context.triggering == Triggering(
        run=Run(id=55, attempt=3), event="pull_request", head=HEAD, branch="fix/a", repository="stranger/shop"
    )
    assert context.head == HEAD
    assert context.problems == ()


@pytest.mark.parametrize(
    ("payload", "problem"),
    [
        ("{", "the event file is not JSON"),
        ("[" * 100_000, "the event file is not JSON"),
        ("[]", "the event file is not a JSON object"),
        ({}, "the event file has no usable `pull_request`: its number and head commit are unknown"),
        (
            {"pull_request": {**pull(), "number": "7"}},
            "the event file has no usable `pull_request`: its number and head commit are unknown",
        ),
        (
            {"pull_request": {**pull(), "head": {"sha": "../../x"}}},
            "the event file has no usable `pull_request`: its number and head commit are unknown",
        ),
    ],
)
def test_a_malformed_event_file_is_a_problem(tmp_path: Path, payload: Any, problem: str):
    """Each malformed part is named, and the rest of the context is still used."""
    context = read(tmp_path, "pull_request", payload)
    assert context.problems == (problem,)
    assert (context.pull_request, context.repository, context.head) == (None, "acme/shop", MERGE)


def test_a_malformed_workflow_run_is_a_problem(tmp_path: Path):
    """Without run, commit or branch, there is nothing to report on."""
    context = read(tmp_path, "workflow_run", {"workflow_run": {**TRIGGERING, "head_branch": None}})
    assert context.triggering is None
    assert context.problems == ("the event file has no usable `workflow_run`: the run to report on is unknown",)


def test_a_missing_event_file_is_a_problem(tmp_path: Path):
    """A missing event file is reported with the system's reason."""
    environ = {**ENVIRON, "GITHUB_EVENT_NAME": "pull_request"}
    assert read_context(environ).problems == ("GITHUB_EVENT_PATH is not set: the event is unknown",)
    gone = read_context({**environ, "GITHUB_EVENT_PATH": str(tmp_path / "gone.json")})
    assert gone.problems == ("the event file cannot be read: No such file or directory",)


def test_a_huge_event_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The size of the file is checked first."""
    monkeypatch.setattr(events, "LARGEST_EVENT_BYTES", 10)
    context = read(tmp_path, "pull_request", "x" * 11)
    assert context.problems == ("the event file has 11 bytes, more than 10: it was not read",)


def test_a_host_that_is_no_url_gets_no_token():
    """Without a usable API address, there is no repository to write to."""
    context = read_context({**ENVIRON, "GITHUB_API_URL": "file:///etc/passwd", "GITHUB_REPOSITORY": "acme/shop"})
    assert context.repository == ""
    assert context.problems == ("GITHUB_API_URL: expected a URL, got 'file:///etc/passwd'",)


def test_a_malformed_repository_is_a_problem():
    """A repository cannot smuggle a path into the API's."""
    context = read_context({**ENVIRON, "GITHUB_REPOSITORY": "acme/../../user"})
    assert context.repository == ""
    assert context.problems == ("GITHUB_REPOSITORY: expected owner/name, got 'acme/../../user'",)


def test_outside_of_github_nothing_is_known():
    """An empty environment is not a problem, and not a place to publish."""
    assert read_context({}) == Context()
    assert read_context({}).run_url == ""


@given(json_values)
def test_no_json_breaks_the_reading_of_a_pull_request(value: Any):
    """Whatever the shape, the answer is a pull request or None."""
    found = pull_request({"number": 7, "head": value, "state": value})
    assert found is None or found.number == 7
