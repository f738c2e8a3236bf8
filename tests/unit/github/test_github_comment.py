"""One correct comment, whoever writes at the same time, and whatever strangers and outages do."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest
import report_samples as samples
from github_server import BOT, DENIED, TOKEN, Fault, GitHubServer

from export_gate.github import publish
from export_gate.github.api import Api, ApiError
from export_gate.github.body import Frame
from export_gate.github.comment import MODES, Mode, Place, Posted, Text, decide, put_comment
from export_gate.github.context import Context
from export_gate.github.marker import Marker, Run
from export_gate.github.patience import Patience
from export_gate.report.build import build_report
from export_gate.report.record import ChangeView

PLACE = Place(repository="acme/shop", number=7)
THREAD = "/repos/acme/shop/issues/7/comments"
STRANGER = {"login": "mallory", "type": "User"}
APP = {"login": "acme-app[bot]", "type": "Bot"}
RED = Marker(comment="export-gate", run=Run(id=10, attempt=1), verdict="violations", digest="1" * 16)
GREEN = replace(RED, verdict="verified", digest="0" * 16)


def text(marker: Marker, words: str = "") -> Text:
    """A comment with that marker."""
    return Text(marker=marker, body=f"{marker}\n{words or marker.verdict}\n")


def run(number: int, marker: Marker = RED, attempt: int = 1) -> Marker:
    """The same verdict by another run."""
    return replace(marker, run=Run(id=number, attempt=attempt))


def put(api: Api, marker: Marker, mode: Mode = "always") -> str:
    """How it ended."""
    return put_comment(api, PLACE, mode, text(marker)).what


def writes(github: GitHubServer) -> list[str]:
    """Requests that change something, without the repository."""
    asked = [line for line in github.requests() if not line.startswith("GET") and line != "POST /graphql"]
    return [line.replace("/repos/acme/shop/issues", "") for line in asked]


def test_the_first_run_writes(github: GitHubServer, api: Api):
    """A pull request without our comment gets one, and its address is returned."""
    posted = put_comment(api, PLACE, "always", text(RED))
    assert posted == Posted(what="created", url="https://github.example/acme/shop/pull/7#issuecomment-1001")
    assert github.bodies() == [text(RED).body]


@pytest.mark.slow
def test_the_next_run_updates(github: GitHubServer, api: Api):
    """A push changes the comment instead of adding one, and green after red is green."""
    put(api, RED)
    assert put(api, run(11, GREEN)) == "updated"
    assert github.bodies() == [text(run(11, GREEN)).body]
    assert writes(github) == ["POST /7/comments", "PATCH /comments/1001"]


@pytest.mark.slow
def test_ours_is_found_among_250_comments(github: GitHubServer, api: Api):
    """All pages are searched for our comment."""
    for number in range(249):
        github.add(f"comment {number}", user=STRANGER)
    github.add(text(RED).body)
    assert put(api, run(11)) == "updated"
    assert writes(github) == ["PATCH /comments/1250"]


def test_a_forged_marker_of_a_stranger_is_left_alone(github: GitHubServer, api: Api):
    """A stranger's comment with our marker line is ignored, even if its run id is huge."""
    github.add(text(run(999_999, GREEN)).body, user=STRANGER)
    assert put(api, RED) == "created"
    assert github.bodies() == [text(run(999_999, GREEN)).body, text(RED).body]


def test_a_bot_that_quotes_our_marker_is_left_alone(github: GitHubServer, api: Api):
    """The marker counts only as the first line of a comment."""
    quoted = f"> {text(RED).body}"
    github.add(quoted, user={"login": "welcome[bot]", "type": "Bot"})
    github.add(f"Somebody said:\n{text(RED).body}", user={"login": "welcome[bot]", "type": "Bot"})
    assert put(api, RED) == "created"
    assert len(github.bodies()) == 3


@pytest.mark.slow
def test_another_comment_id_is_another_comment(github: GitHubServer, api: Api):
    """The comments of two configs in one pull request stay separate."""
    put(api, RED)
    put(api, replace(GREEN, comment="export-gate.nightly"))
    put(api, run(11))
    assert github.bodies() == [text(run(11)).body, text(replace(GREEN, comment="export-gate.nightly")).body]


@pytest.mark.slow
def test_a_users_token_finds_its_own_comment(github: GitHubServer, api: Api):
    """With a personal token the author is a user: the token is asked who that is, and a forger is still ignored."""
    github.writer, github.login_is_known = {"login": "release-robot", "type": "User"}, True
    github.add(text(run(999, GREEN)).body, user=STRANGER)
    assert put(api, RED) == "created"
    again = Api(github.url, TOKEN)
    assert put(again, run(11)) == "updated"
    assert github.bodies() == [text(run(999, GREEN)).body, text(run(11)).body]


@pytest.mark.slow
def test_a_jobs_token_is_not_asked_who_it_is_without_need(github: GitHubServer, api: Api):
    """The question is asked only if somebody wrote our marker, and once for all comments."""
    put(api, RED)
    assert "POST /graphql" not in github.requests()
    put(api, run(11))
    assert github.requests().count("POST /graphql") == 1
    assert "GET /user" not in github.requests()


@pytest.mark.slow
@pytest.mark.parametrize("writer", [BOT, APP, {"login": "release-robot", "type": "User"}])
@pytest.mark.parametrize("knows", ["viewer", "user", "nobody"])
def test_another_bot_does_not_silence_ours(github: GitHubServer, api: Api, writer: dict[str, str], knows: str):
    """A marker with an absurd run number counts only if its author is the account that this token writes as."""
    github.writer = writer
    github.viewer_is_known, github.login_is_known = knows == "viewer", knows == "user"
    others = [user for user in (BOT, APP, STRANGER) if user != writer and (knows != "nobody" or user != BOT)]
    for other in others:
        github.add(text(run(10**18, GREEN)).body, user=other)
    assert put(api, RED) == "created"
    assert put(api, run(11)) in ("updated", "created")
    assert github.bodies() == [text(run(10**18, GREEN)).body] * len(others) + [text(run(11)).body]


@pytest.mark.slow
def test_an_outage_is_no_answer_to_who_we_are(github: GitHubServer, api: Api):
    """If GitHub cannot say who we are, no comment is taken for ours, or for a stranger's."""
    github.add(text(run(5)).body)
    github.faults.append(Fault(status=502, path="^/graphql$", times=9))
    with pytest.raises(ApiError) as caught:
        put(api, RED)
    assert caught.value.status == 502
    assert len(github.bodies()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("verdict", ["verified", "violations"])
def test_an_older_run_never_overwrites(github: GitHubServer, api: Api, verdict: Any):
    """A slow run of an earlier commit does not overwrite the newer run's comment."""
    put(api, run(12, GREEN))
    before = github.bodies()
    assert put(api, run(11, replace(RED, verdict=verdict))) == "newer"
    assert put(api, run(11, replace(RED, verdict=verdict), attempt=5)) == "newer"
    assert github.bodies() == before


@pytest.mark.slow
def test_another_attempt_of_the_same_run_overwrites(github: GitHubServer, api: Api):
    """Re-running a flaky job turns the comment green."""
    put(api, RED)
    assert put(api, run(10, GREEN, attempt=2)) == "updated"


@pytest.mark.slow
def test_of_one_run_the_worse_verdict_stays(github: GitHubServer, api: Api):
    """Two matrix legs share a comment-id: the green one never hides the red one, in either order."""
    assert put(api, RED) == "created"
    assert put(api, GREEN) == "worse"
    assert github.bodies() == [text(RED).body]
    github.comments.clear()
    assert put(api, GREEN) == "created"
    assert put(api, RED) == "updated"
    assert github.bodies() == [text(RED).body]


def test_duplicates_are_removed(github: GitHubServer, api: Api):
    """The lowest id stays; strangers' comments and those of a newer run stay too."""
    first = github.add(text(run(5)).body)
    github.add("hello", user=STRANGER)
    github.add(text(run(6)).body)
    github.add(text(run(7)).body, user=APP)
    assert put(api, RED) == "updated"
    assert github.bodies() == [text(RED).body, "hello", text(run(7)).body]
    assert min(github.comments) == first["id"]


@pytest.mark.parametrize(
    ("mode", "there", "mine", "what"),
    [
        ("always", [], GREEN, "write"),
        ("changes", [], GREEN, "write"),
        ("on-failure", [], GREEN, "not-needed"),
        ("on-failure", [], RED, "write"),
        ("on-failure", [run(5)], GREEN, "write"),
        ("on-failure", [run(5)], RED, "write"),
        ("changes", [run(5)], RED, "unchanged"),
        ("changes", [run(5)], GREEN, "write"),
        ("changes", [run(5, GREEN)], GREEN, "unchanged"),
        ("changes", [replace(run(5), digest="2" * 16)], RED, "write"),
        ("always", [run(5)], RED, "write"),
        ("always", [run(11)], RED, "newer"),
        ("changes", [run(5), run(11)], RED, "newer"),
        ("always", [replace(RED, verdict="broken")], RED, "worse"),
        ("always", [replace(RED, digest="2" * 16)], RED, "write"),
        ("always", [run(0, RED)], run(0, GREEN), "write"),
        ("always", [run(5)], run(0, GREEN), "write"),
    ],
)
def test_what_each_mode_decides(mode: Mode, there: list[Marker], mine: Marker, what: str):
    """`changes` writes only news; `on-failure` starts with a failure and resolves it later."""
    assert decide(mode, mine, there) == what


def test_every_mode_is_known():
    """The command line offers these modes."""
    assert MODES == ("always", "changes", "on-failure", "never")


@pytest.mark.slow
def test_a_verified_run_without_a_comment_stays_silent_on_failure(github: GitHubServer, api: Api):
    """With on-failure there is no comment at first, then a red one, which is then resolved."""
    assert put(api, GREEN, "on-failure") == "not-needed"
    assert put(api, run(11), "on-failure") == "created"
    assert put(api, run(12, GREEN), "on-failure") == "updated"
    assert github.bodies() == [text(run(12, GREEN)).body]


def test_a_loosened_check_is_no_silent_success(github: GitHubServer, api: Api):
    """Who only hears of failures hears of a change after which fewer of them show."""
    report = build_report(samples.green())
    looser = ChangeView(origin="base", loosened=("limit 120 -> 1",), otherwise=(), fails=False)
    frame = Frame(comment_id="export-gate", run=Run(id=1, attempt=1))
    for change, written in ((None, 0), (looser, 1)):
        publish.put(replace(report, change=change), frame, mode="on-failure", place=PLACE, api=api, context=Context())
        assert len(github.bodies()) == written


def test_nothing_new_is_not_written(github: GitHubServer, api: Api):
    """With changes, a later run with the same verdict and findings does not touch the comment."""
    put(api, RED, "changes")
    posted = put_comment(api, PLACE, "changes", text(run(11)))
    assert posted == Posted(what="unchanged", url="https://github.example/acme/shop/pull/7#issuecomment-1001")
    assert writes(github) == ["POST /7/comments"]


@pytest.mark.slow
@pytest.mark.parametrize("fault", [Fault(status=502), Fault(status=500), Fault(status=0)])
def test_a_post_that_came_through_is_not_repeated(github: GitHubServer, api: Api, waits: list[float], fault: Fault):
    """The answer was lost, but not the comment: reading again finds it."""
    github.faults.append(replace(fault, method="POST", times=1, after=True))
    assert put(api, RED) == "updated"
    assert github.bodies() == [text(RED).body]
    assert [line for line in github.requests() if line.startswith("POST /repos")] == [f"POST {THREAD}"]


@pytest.mark.slow
def test_a_post_that_was_lost_is_sent_again_after_reading(github: GitHubServer, api: Api, waits: list[float]):
    """A secondary limit on writing is waited out, and the comments are read again before the next attempt."""
    limit = Fault(status=403, method="POST", message="You have exceeded a secondary rate limit")
    github.faults.append(limit)
    assert put(api, RED) == "created"
    assert waits == [60.0]
    assert github.requests() == [
        f"GET {THREAD}?per_page=100",
        f"POST {THREAD}",
        f"GET {THREAD}?per_page=100",
        f"POST {THREAD}",
        f"GET {THREAD}?per_page=100",
    ]


def test_a_patch_in_an_outage_is_repeated_after_reading(github: GitHubServer, api: Api):
    """A newer run may have written in the meantime: its comment then stays."""
    made = github.add(text(run(5)).body)
    github.faults.append(Fault(status=502, method="PATCH"))

    def newer_writes(method: str, path: str) -> None:
        if method == "PATCH":
            made["body"] = text(run(20, GREEN)).body

    github.before = newer_writes
    assert put(api, RED) == "newer"
    assert github.bodies() == [text(run(20, GREEN)).body]


@pytest.mark.slow
def test_a_comment_deleted_meanwhile_is_written_anew(github: GitHubServer, api: Api):
    """If somebody deletes the comment between our reading and our writing, it is created again."""
    made = github.add(text(run(5)).body)

    def somebody_deletes(method: str, path: str) -> None:
        if method == "PATCH":
            github.comments.pop(made["id"], None)

    github.before = somebody_deletes
    assert put(api, RED) == "created"
    assert github.bodies() == [text(RED).body]


@pytest.mark.slow
def test_an_older_run_that_had_read_before_is_corrected(github: GitHubServer, api: Api):
    """If a slow older run overwrites ours right after our write, the next reading notices and it is written again."""
    made = github.add(text(run(5)).body)
    answers = [text(run(6)).body]

    def older_writes(method: str, path: str) -> None:
        if method == "GET" and path.endswith(f"/comments/{made['id']}") and answers:
            made["body"] = answers.pop()

    github.before = older_writes
    assert put(api, RED) == "updated"
    assert github.bodies() == [text(RED).body]


@pytest.mark.slow
def test_a_fight_over_the_comment_ends(github: GitHubServer, api: Api):
    """If somebody overwrites the comment again and again, we give up in the end."""
    made = github.add(text(run(5)).body)

    def always_older(method: str, path: str) -> None:
        if method == "GET" and path.endswith(f"/comments/{made['id']}"):
            made["body"] = text(run(6)).body

    github.before = always_older
    with pytest.raises(ApiError) as caught:
        put(api, RED)
    assert caught.value.message == "others kept changing the comment; gave up after 6 readings"


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second"), [(RED, GREEN), (GREEN, RED), (RED, run(11, GREEN)), (run(11), GREEN)])
def test_two_writers_at_once_leave_one_comment(github: GitHubServer, first: Marker, second: Marker):
    """Both find no comment and post one; one is left: the newer run's, or the worse verdict of one run."""
    both_have_read = threading.Barrier(2, timeout=10)

    def meet(method: str, path: str) -> None:
        if method == "POST":
            both_have_read.wait()

    github.before = meet
    problems: list[BaseException] = []

    def write(marker: Marker) -> None:
        try:
            put(Api(github.url, TOKEN, Patience(sleep=lambda _: None)), marker)
        except BaseException as error:  # noqa: BLE001 - told by the main thread
            problems.append(error)

    threads = [threading.Thread(target=write, args=(marker,)) for marker in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert problems == []
    expected = max(first, second, key=lambda marker: (marker.run, marker.verdict == "violations"))
    assert github.bodies() == [text(expected).body]


def test_a_token_that_cannot_write_is_an_error(github: GitHubServer, api: Api, waits: list[float]):
    """A 403 is reported at once."""
    github.can_write = False
    with pytest.raises(ApiError) as caught:
        put(api, RED)
    assert (caught.value.status, caught.value.message) == (403, DENIED["message"])
    assert waits == []


def test_a_comment_that_may_not_be_changed_is_an_error(github: GitHubServer, api: Api):
    """GitHub answers `not found` for what a token may not change: that is not a reason to write a second comment."""
    github.add(text(run(5)).body)
    github.faults.append(Fault(status=404, method="PATCH", times=9, message="Not Found"))
    with pytest.raises(ApiError) as caught:
        put(api, RED)
    assert (caught.value.status, caught.value.message) == (404, "Not Found")
    assert len(github.bodies()) == 1


@pytest.mark.parametrize("odd", [{"id": None}, {"body": None}, {"user": None}, {"html_url": 7}, {"id": "x", "body": 1}])
def test_odd_comments_are_no_trouble(github: GitHubServer, api: Api, odd: dict[str, Any]):
    """A comment with missing fields or fields of another type is not ours; a deleted user has no login."""
    made = github.add("hello", user=BOT)
    made.update(odd)
    assert put(api, RED) == "created"
