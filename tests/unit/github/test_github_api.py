"""Only one host gets the token, answers are bounded, limits are waited out, and no write is repeated automatically."""

from __future__ import annotations

import email.utils
import time

import pytest
from github_server import DENIED, TOKEN, Fault, GitHubServer

from export_gate import __version__
from export_gate.github import api as module
from export_gate.github.api import Api, ApiError
from export_gate.github.patience import Patience, within

THREAD = "/repos/acme/shop/issues/7/comments"


def _error(api: Api, path: str = THREAD) -> ApiError:
    with pytest.raises(ApiError) as caught:
        api.get(path)
    return caught.value


def test_a_request_says_who_asks_and_which_version(github: GitHubServer, api: Api):
    """The token is sent as a bearer token, and the API version is pinned."""
    assert api.get(THREAD) == []
    headers = github.log[0].headers
    assert headers["Authorization"] == f"Bearer {TOKEN}"
    assert headers["X-GitHub-Api-Version"] == "2022-11-28"
    assert headers["Accept"] == "application/vnd.github+json"
    assert headers["User-Agent"] == f"export-gate/{__version__}"


def test_all_pages_are_read(github: GitHubServer, api: Api):
    """250 comments come on three pages, and all are read."""
    for number in range(250):
        github.add(f"comment {number}")
    bodies = [comment["body"] for comment in api.pages(f"{THREAD}?per_page=100")]
    assert bodies == [f"comment {number}" for number in range(250)]
    assert len(github.log) == 3


@pytest.mark.parametrize("status", [500, 502, 503])
def test_an_outage_is_waited_out(github: GitHubServer, api: Api, waits: list[float], status: int):
    """Three failures are retried, with growing waits."""
    github.faults.append(Fault(status=status, times=3))
    assert api.get(THREAD) == []
    assert waits == [1.0, 2.0, 4.0]


def test_an_outage_that_lasts_is_an_error(github: GitHubServer, api: Api, waits: list[float]):
    """The fourth failure is reported."""
    github.faults.append(Fault(status=502, times=9, message="Bad Gateway"))
    error = _error(api)
    assert (error.status, error.message) == (502, "Bad Gateway")
    assert len(github.log) == 4
    assert waits == [1.0, 2.0, 4.0]


def test_a_hang_up_is_tried_again(github: GitHubServer, api: Api, waits: list[float]):
    """A connection that ends without an answer is an outage."""
    github.faults.append(Fault(status=0))
    assert api.get(THREAD) == []
    assert waits == [1.0]


@pytest.mark.slow
def test_a_timeout_is_tried_again(github: GitHubServer, api: Api, waits: list[float], monkeypatch: pytest.MonkeyPatch):
    """An answer that does not come is an outage."""
    monkeypatch.setattr(module, "READ_S", 0.2)
    github.faults.append(Fault(status=200, delay_s=1.0))
    assert api.get(THREAD) == []
    assert waits == [1.0]


@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=429),
        Fault(status=403, message="You have exceeded a secondary rate limit. Please wait a few minutes."),
    ],
)
def test_a_limit_that_does_not_say_how_long_is_given_a_minute(
    github: GitHubServer, api: Api, waits: list[float], fault: Fault
):
    """Without Retry-After, the wait is a minute, as GitHub advises for secondary limits."""
    fault.times = 1
    github.faults.append(fault)
    assert api.get(THREAD) == []
    assert waits == [60.0]


@pytest.mark.parametrize("status", [403, 429, 503])
def test_retry_after_is_obeyed(github: GitHubServer, api: Api, waits: list[float], status: int):
    """If GitHub says how long to wait, that is how long the client waits."""
    github.faults.append(Fault(status=status, headers={"Retry-After": "17"}))
    assert api.get(THREAD) == []
    assert waits == [17.0]


def test_retry_after_may_be_a_date(github: GitHubServer, api: Api, waits: list[float]):
    """HTTP allows a number of seconds and a date."""
    date = email.utils.format_datetime(email.utils.localtime()).replace("\n", "")
    github.faults.append(Fault(status=429, headers={"Retry-After": date}))
    assert api.get(THREAD) == []
    assert waits == [1.0]


def test_a_used_up_limit_starts_anew_at_its_reset(github: GitHubServer, api: Api, waits: list[float]):
    """For the primary limit, the client waits until the time at which it ends."""
    headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(time.time()) + 30)}
    github.faults.append(Fault(status=403, message="API rate limit exceeded", headers=headers))
    assert api.get(THREAD) == []
    assert 25 <= waits[0] <= 30


def test_patience_ends(github: GitHubServer, api: Api, waits: list[float]):
    """Nobody waits an hour for a comment: all requests together have three minutes."""
    github.faults.append(Fault(status=429, headers={"Retry-After": "3600"}))
    assert _error(api).status == 429
    assert waits == []
    github.faults.append(Fault(status=429, times=9, headers={"Retry-After": "100"}))
    assert _error(api).status == 429
    assert waits == [100.0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=200, delay_s=0.3, body=b"[]"),
        Fault(status=502, headers={"Retry-After": "0"}, delay_s=0.1),
        Fault(status=403, message="You have exceeded a secondary rate limit", headers={"Retry-After": "0"}),
        Fault(status=200, body=b"[" + b" " * 40, drip_s=0.1),
        Fault(status=0, delay_s=0.3),
    ],
)
def test_all_requests_together_have_one_deadline(github: GitHubServer, fault: Fault):
    """Slow answers, outages, limits and an answer byte by byte all end in time, and what was not done is reported."""
    fault.times = 99
    github.faults.append(fault)
    api = Api(github.url, TOKEN, Patience(seconds=0.8))
    started, last = time.monotonic(), ""
    while not last.startswith("all requests") and time.monotonic() - started < 5:
        try:
            api.get(THREAD)
        except ApiError as error:
            last = error.message
    assert time.monotonic() - started < 2
    assert last == "all requests together were given 1 s, which are over"
    asked = len(github.log)
    with pytest.raises(ApiError):
        api.write("POST", THREAD, {"body": "x"})
    assert len(github.log) == asked


def test_the_deadline_leaves_time_in_a_job():
    """The examples give a job that reports five minutes; the rest is for its environment and its summary."""
    assert Patience().seconds < 180


@pytest.mark.slow
def test_an_answer_has_a_time_of_its_own(
    github: GitHubServer, api: Api, waits: list[float], monkeypatch: pytest.MonkeyPatch
):
    """An answer that comes byte by byte is abandoned, and requested again."""
    monkeypatch.setattr(module, "WHOLE_S", 0.3)
    github.faults.append(Fault(status=200, body=b"[]" + b" " * 40, drip_s=0.1))
    assert api.get(THREAD) == []
    assert waits == [1.0]


def test_an_error_of_the_thread_is_the_callers():
    """An exception of the thread is raised in the caller."""
    with pytest.raises(ZeroDivisionError):
        within(5, lambda: 1 // 0)


def test_whose_the_token_is(github: GitHubServer, api: Api):
    """GraphQL is next to the REST API, on github.com and on an Enterprise server."""
    assert api.ask("query { viewer { login } }") == {"viewer": {"login": "github-actions[bot]"}}
    github.faults.append(Fault(status=200, path="^/api/graphql$", body=b'{"data": {"a": 1}}'))
    assert Api(f"{github.url}/api/v3", TOKEN).ask("query { a }") == {"a": 1}


def test_a_refusal_is_not_tried_again(github: GitHubServer, api: Api, waits: list[float]):
    """A missing permission does not change, so it is not retried."""
    github.faults.append(Fault(status=403, message=DENIED["message"]))
    assert _error(api).message == DENIED["message"]
    assert len(github.log) == 1
    assert waits == []


@pytest.mark.parametrize("fault", [Fault(status=500), Fault(status=0), Fault(status=429)])
def test_a_write_is_sent_once(github: GitHubServer, api: Api, fault: Fault):
    """The caller has to find out whether the write succeeded."""
    fault.times = 1
    github.faults.append(fault)
    with pytest.raises(ApiError):
        api.write("POST", THREAD, {"body": "x"})
    assert github.requests() == [f"POST {THREAD}"]


def test_a_redirect_on_the_same_host_is_followed(github: GitHubServer, api: Api):
    """A renamed repository answers from its new place, also to writes."""
    for status, method in ((301, "GET"), (307, "POST")):
        moved = {"Location": f"{github.url}{THREAD}"}
        github.faults.append(Fault(status=status, method=method, path="/old/", headers=moved))
    assert api.get("/old/x") == []
    assert api.write("POST", "/old/x", {"body": "x"})["body"] == "x"


def test_a_redirect_to_another_host_gets_no_token(github: GitHubServer, api: Api):
    """The token is sent only to the host that it is for."""
    with GitHubServer() as other:
        github.faults.append(Fault(status=302, headers={"Location": f"{other.url}/user"}))
        error = _error(api)
        assert error.message == f"{api.host} points to another host: {other.url}/user"
        assert other.log == []


@pytest.mark.parametrize("location", ["", "http://[", "http://127.0.0.1:port/x", "//evil.example/x"])
def test_a_redirect_to_nowhere_is_an_error(github: GitHubServer, api: Api, location: str):
    """A malformed address is an error, not a crash."""
    github.faults.append(Fault(status=302, headers={"Location": location}))
    assert _error(api).message == f"{api.host} points to another host: {location or 'nowhere'}"


def test_a_circle_of_redirects_ends(github: GitHubServer, api: Api):
    """After three redirects the request is an error."""
    github.faults.append(Fault(status=302, times=99, headers={"Location": THREAD}))
    assert _error(api).status == 302
    assert len(github.log) == 4


def test_a_next_page_on_another_host_is_not_read(github: GitHubServer, api: Api):
    """Paging does not send the token to another host either."""
    link = {"Link": '<https://evil.example/page2>; rel="next"'}
    github.faults.append(Fault(status=200, body=b"[]", headers=link))
    with pytest.raises(ApiError) as caught:
        list(api.pages(THREAD))
    assert caught.value.message == f"{api.host} points to another host: https://evil.example/page2"


@pytest.mark.slow
def test_endless_pages_end(github: GitHubServer, api: Api):
    """A list that always has a next page is abandoned after a hundred pages."""
    link = {"Link": f'<{github.url}{THREAD}>; rel="next"'}
    github.faults.append(Fault(status=200, body=b"[1]", headers=link, times=999))
    assert len(list(api.pages(THREAD))) == 100


def test_a_huge_answer_is_not_read(github: GitHubServer, api: Api, monkeypatch: pytest.MonkeyPatch):
    """Memory is bounded, whatever the server sends."""
    monkeypatch.setattr(module, "LARGEST_ANSWER_BYTES", 100_000)
    github.faults.append(Fault(status=200, body=b"[" + b" " * 1_000_000 + b"]", times=9))
    assert _error(api).message == "the answer has more than 100000 bytes"


@pytest.mark.parametrize("body", [b"<html>", b"\xff", b"[" * 200_000, b'{"a": 1}', b"null"])
def test_an_answer_that_is_no_list_is_an_error(github: GitHubServer, api: Api, body: bytes):
    """A proxy's page, or JSON of another shape, is not mistaken for comments."""
    github.faults.append(Fault(status=200, body=body))
    with pytest.raises(ApiError) as caught:
        list(api.pages(THREAD))
    assert caught.value.message == f"expected a list from {THREAD}, got something else"


def test_details_of_a_refusal_are_told(api: Api):
    """With a 422, the reason is in a list besides the message."""
    with pytest.raises(ApiError) as caught:
        api.write("POST", THREAD, {"body": " "})
    assert (caught.value.status, caught.value.message) == (422, "Validation Failed: Body cannot be blank")


def test_the_token_is_in_no_message(github: GitHubServer, api: Api):
    """The token is removed even if the server echoes it, and a message stays on one line."""
    github.faults.append(Fault(status=400, message=f"bad header\n::error::Bearer {TOKEN}"))
    error = _error(api)
    assert error.message == "bad header ::error::Bearer ***"
    assert TOKEN not in repr(vars(error))


def test_nobody_there(waits: list[float], patience: Patience):
    """A refused connection is an outage, and the message is the network's."""
    with GitHubServer() as gone:
        url = gone.url
    error = _error(Api(url, TOKEN, patience))
    assert error.status == 0
    assert "Connection refused" in error.message
    assert waits == [1.0, 2.0, 4.0]


def test_a_proxy_of_the_environment_is_used(github: GitHubServer, monkeypatch: pytest.MonkeyPatch):
    """Runners behind a proxy reach GitHub through it."""
    monkeypatch.setenv("http_proxy", github.url)
    monkeypatch.setenv("no_proxy", "")
    api = Api("http://github.acme.invalid/api/v3", TOKEN)
    with pytest.raises(ApiError):
        api.get("/user")
    assert github.requests() == ["GET http://github.acme.invalid/api/v3/user"]
