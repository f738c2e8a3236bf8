"""A client of GitHub's API: only one host gets the token, answers are bounded, limits and outages are waited out.

Reads are retried automatically. A write is tried once: the caller reads again to see whether it succeeded.
"""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit

import urllib3
from urllib3.exceptions import HTTPError

from export_gate import __version__
from export_gate.github.limits import retry_after
from export_gate.github.patience import Patience, within
from export_gate.report.escape import one_line

API_VERSION = "2022-11-28"
CONNECT_S, READ_S, WHOLE_S = 10.0, 30.0, 60.0
"""Time limits for connecting, for the gap between two pieces of an answer, and for one whole answer."""
LARGEST_ANSWER_BYTES = 64 * 1024 * 1024
"""A page of 100 comments of 65,536 characters each is smaller."""
TRIES = 4
"""With waits of 1, 2 and 4 s between them where GitHub does not say how long."""
MOST_PAGES = 100
"""A server that always names a next page must not keep the job busy."""
MOST_REDIRECTS = 3
_NEXT = re.compile(r'<([^<>]*)>\s*;[^,]*\brel="?next"?')


class ApiError(Exception):
    """A request to GitHub failed."""

    def __init__(self, status: int, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        """The HTTP status; 0 if there was no answer."""
        self.message = message
        """GitHub's message or the network error, on one line."""
        self.retry_after_s = retry_after_s
        """When to try again; None if that does not help."""
        self.is_final = False
        """Whether all retries are used up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A response that was read to its end."""

    status: int
    headers: Mapping[str, str]
    value: Any
    """The JSON value; None for an empty body or one that is not JSON."""


class Api:
    """A session with one API host."""

    def __init__(self, base: str, token: str, patience: Patience | None = None) -> None:
        self._base = base.rstrip("/")
        self._token = token
        self._patience = patience or Patience()
        self._pool = _pool(self._base)

    @property
    def host(self) -> str:
        """The host's name, for messages."""
        return urlsplit(self._base).netloc

    def get(self, path: str) -> Any:
        """The JSON value at `path`.

        Raises:
            ApiError: it cannot be read.
        """
        return self._read(f"{self._base}{path}").value

    def ask(self, question: str) -> Any:
        """The data that answers a GraphQL query, which changes nothing; None if there is none.

        Raises:
            ApiError: it is not answered.
        """
        url = f"{self._base.removesuffix('/v3')}/graphql"  # of an Enterprise server, api/graphql is beside api/v3
        value = self._read(url, {"query": question}).value
        return value.get("data") if isinstance(value, dict) else None

    def pages(self, path: str) -> Iterator[Any]:
        """The items of a list, over all its pages.

        Raises:
            ApiError: a page cannot be read or is not a list.
        """
        url: str | None = f"{self._base}{path}"
        for _ in range(MOST_PAGES):
            if url is None:
                return
            answer = self._read(url)
            if not isinstance(answer.value, list):
                raise ApiError(answer.status, f"expected a list from {path}, got something else")
            yield from answer.value
            following = _NEXT.search(answer.headers.get("link", ""))
            url = self._own(following[1], url) if following else None

    def write(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Send once, and give back the JSON value.

        Raises:
            ApiError: the request failed; with a status of 0 or at least 500, the write may have happened
                nevertheless.
        """
        return self._send(method, f"{self._base}{path}", body).value

    def pause(self, error: ApiError, attempt: int) -> bool:
        """Wait as `error` asks, and return whether another attempt makes sense."""
        wait_s = error.retry_after_s
        if wait_s is None or error.is_final or attempt + 1 >= TRIES or wait_s > self._patience.left_s():
            # The caller may catch the error and ask again; it must not wait a second time.
            error.is_final = True
            return False
        self._patience.sleep(wait_s)
        return True

    def _read(self, url: str, question: Mapping[str, Any] | None = None) -> Answer:
        attempt, method = 0, "GET" if question is None else "POST"
        while True:
            try:
                return self._send(method, url, question, attempt)
            except ApiError as error:
                if not self.pause(error, attempt):
                    raise
                attempt += 1

    def _send(self, method: str, url: str, body: Mapping[str, Any] | None, attempt: int = 0) -> Answer:
        for _ in range(MOST_REDIRECTS + 1):
            answer = self._exchange(method, url, body, attempt)
            # After 301 and 302, clients turn a write into a GET; only 307 and 308 keep the method.
            if answer.status not in (301, 302, 307, 308) or (method != "GET" and answer.status < 307):  # noqa: PLR2004
                break
            url = self._own(answer.headers.get("location", ""), url)
        if 200 <= answer.status < 300:  # noqa: PLR2004
            return answer
        message = self._safe(_message(answer))
        raise ApiError(
            answer.status, message, retry_after_s=retry_after(answer.status, answer.headers, message, attempt)
        )

    def _exchange(self, method: str, url: str, body: Mapping[str, Any] | None, attempt: int) -> Answer:
        left_s = self._patience.left_s()
        try:
            if left_s > 0:
                # A TimeoutError of `within` is an OSError.
                return within(min(WHOLE_S, left_s), lambda: self._answer(method, url, body))
        except (HTTPError, OSError) as error:
            if self._patience.left_s() > 0:
                raise ApiError(0, self._safe(str(error)), retry_after_s=2.0**attempt) from error
        raise ApiError(0, f"all requests together were given {self._patience.seconds:.0f} s, which are over")

    def _answer(self, method: str, url: str, body: Mapping[str, Any] | None) -> Answer:
        response = self._pool.request(
            method,
            url,
            body=None if body is None else json.dumps(body).encode(),
            headers=self._headers(has_body=body is not None),
            timeout=urllib3.Timeout(connect=CONNECT_S, read=READ_S),
            # urllib3 would repeat writes as well, and follow redirects to any host with the token.
            retries=False,
            redirect=False,
            preload_content=False,
        )
        try:
            raw = _bounded(response)
        finally:
            response.release_conn()
        headers = {name.lower(): value for name, value in response.headers.items()}
        return Answer(status=response.status, headers=headers, value=_json(raw))

    def _headers(self, *, has_body: bool) -> dict[str, str]:
        return {
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {self._token}",
            "User-Agent": f"export-gate/{__version__}",
            "X-GitHub-Api-Version": API_VERSION,
        } | ({"Content-Type": "application/json"} if has_body else {})

    def _own(self, url: str, seen_from: str) -> str:
        """Return `url`, which an answer contains, if the token may be sent there."""
        try:
            target = urljoin(seen_from, url)
            is_own = bool(url) and _origin(target) == _origin(self._base)
        except ValueError:
            is_own = False
        if not is_own:
            raise ApiError(0, self._safe(f"{self.host} points to another host: {url or 'nowhere'}"))
        return target

    def _safe(self, message: str) -> str:
        """`message` on one line, short, and without the token."""
        text = one_line(message)
        # Replaced before the text is cut: half a token would not be recognised.
        return (text.replace(self._token, "***") if self._token else text)[:300]


def _pool(base: str) -> urllib3.PoolManager:
    """A connection pool that uses the environment's proxy for this host."""
    parts = urlsplit(base)
    # urllib3 does not read HTTPS_PROXY and NO_PROXY itself.
    proxy = urllib.request.getproxies().get(parts.scheme)
    if proxy and not urllib.request.proxy_bypass(parts.hostname or ""):
        return urllib3.ProxyManager(proxy if "://" in proxy else f"http://{proxy}")
    return urllib3.PoolManager()


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or "").lower(), parts.port


def _bounded(response: urllib3.BaseHTTPResponse) -> bytes:
    """Read the whole body.

    Raises:
        HTTPError: it is too long.
    """
    pieces, length = [], 0
    for piece in response.stream(65_536):
        pieces.append(piece)
        length += len(piece)
        if length > LARGEST_ANSWER_BYTES:
            raise HTTPError(f"the answer has more than {LARGEST_ANSWER_BYTES} bytes")
    return b"".join(pieces)


def _json(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def _message(answer: Answer) -> str:
    value = answer.value if isinstance(answer.value, dict) else {}
    errors = value.get("errors")
    details = [e.get("message", "") for e in errors if isinstance(e, dict)] if isinstance(errors, list) else []
    return ": ".join(str(text) for text in (value.get("message", ""), *details) if text)
