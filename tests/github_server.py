"""GitHub's REST API as far as the gate uses it: comments with paging, pull requests, faults on demand, a log.

`with GitHubServer() as github:` serves on 127.0.0.1; `github.url` is the GITHUB_API_URL. Started as a program, it
serves one repository until it is killed and writes its state to a file after every request:
`python tests/github_server.py PORT_FILE STATE_FILE`.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

BOT = {"login": "github-actions[bot]", "type": "Bot"}
TOKEN = "ghs_0123456789abcdefghijklmnopqrstuvwxyz"
MOST_CHARACTERS = 65_536
DENIED = {"message": "Resource not accessible by integration", "documentation_url": "https://docs.github.com/rest"}


@dataclass(kw_only=True)
class Fault:
    """An answer that replaces the next ones which it matches."""

    status: int
    """0 hangs up without an answer."""
    method: str = ""
    """Empty for any."""
    path: str = ""
    """A regular expression, searched in path and query."""
    times: int = 1
    message: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    """Instead of a JSON object with the message."""
    delay_s: float = 0.0
    drip_s: float = 0.0
    """Between two bytes of the body."""
    after: bool = False
    """Do the work first, then answer so: a write that came through although the answer says otherwise."""


@dataclass(kw_only=True)
class Logged:
    """A request as it came in."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


class GitHubServer:
    """A repository, `acme/shop`, whose state tests set and read directly."""

    def __init__(self, port: int = 0, repository: str = "acme/shop") -> None:
        self.repository = repository
        self.comments: dict[int, dict[str, Any]] = {}
        """By id; each carries the number of its issue under `issue`."""
        self.pulls: list[dict[str, Any]] = []
        self.faults: list[Fault] = []
        self.log: list[Logged] = []
        self.writer: dict[str, str] = dict(BOT)
        """Who the token's comments are by."""
        self.login_is_known = False
        """Whether `GET /user` answers: a personal token's does, the job's does not."""
        self.viewer_is_known = True
        """Whether GraphQL says whose the token is."""
        self.can_write = True
        self.before: Callable[[str, str], None] | None = None
        """Told method and path before a request is answered; another writer, for races."""
        self.on_change: Callable[[], None] | None = None
        self.lock = threading.RLock()
        self._next = 1000
        self._server = ThreadingHTTPServer(("127.0.0.1", port), type("Handler", (_Handler,), {"github": self}))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def url(self) -> str:
        """The GITHUB_API_URL."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> GitHubServer:  # noqa: PYI034 - typing.Self came with Python 3.11
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def add(self, body: str, issue: int = 7, user: dict[str, str] | None = None) -> dict[str, Any]:
        """A comment that somebody wrote."""
        with self.lock:
            self._next += 1
            number = self._next
            made = {
                "id": number,
                "issue": issue,
                "body": body,
                "user": dict(user or BOT),
                "html_url": f"https://github.example/{self.repository}/pull/{issue}#issuecomment-{number}",
            }
            self.comments[number] = made
            return made

    def bodies(self, issue: int = 7) -> list[str]:
        """The comments' texts, oldest first."""
        return [comment["body"] for _, comment in sorted(self.comments.items()) if comment["issue"] == issue]

    def requests(self) -> list[str]:
        """The log as `METHOD path`."""
        return [f"{entry.method} {entry.path}" for entry in self.log]

    def fault_for(self, method: str, path: str) -> Fault | None:
        """The first fault that is due, used up by this."""
        with self.lock:
            for fault in self.faults:
                if fault.times > 0 and fault.method in ("", method) and re.search(fault.path, path):
                    fault.times -= 1
                    return fault
        return None


class _Handler(BaseHTTPRequestHandler):
    github: GitHubServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Nothing on standard error: the log is kept for the test."""

    def do_GET(self) -> None:
        self._serve("GET")

    def do_POST(self) -> None:
        self._serve("POST")

    def do_PATCH(self) -> None:
        self._serve("PATCH")

    def do_DELETE(self) -> None:
        self._serve("DELETE")

    def _serve(self, method: str) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = json.loads(raw) if raw else None
        entry = Logged(method=method, path=self.path, headers=dict(self.headers), body=body)
        with self.github.lock:
            self.github.log.append(entry)
        if self.github.before is not None:
            self.github.before(method, self.path)
        fault = self.github.fault_for(method, self.path)
        if fault is None:
            self._answer(*self._work(method, body))
        else:
            if fault.after:
                self._work(method, body)
            self._fail(fault)
        if self.github.on_change is not None:
            self.github.on_change()

    def _fail(self, fault: Fault) -> None:
        time.sleep(fault.delay_s)
        if fault.status == 0:
            self.close_connection = True
            return
        message = {"message": fault.message or f"status {fault.status}"}
        self._answer(fault.status, message if fault.body is None else fault.body, fault.headers, fault.drip_s)

    def _answer(self, status: int, value: Any, headers: dict[str, str] | None = None, drip_s: float = 0.0) -> None:
        raw = value if isinstance(value, bytes) else b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        for name, text in {"Content-Type": "application/json; charset=utf-8", **(headers or {})}.items():
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        try:
            for piece in (raw[at : at + 1] for at in range(len(raw))) if drip_s else (raw,):
                self.wfile.write(piece)
                time.sleep(drip_s)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _work(self, method: str, body: Any) -> tuple[int, Any, dict[str, str]]:
        github, parts = self.github, urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return 401, {"message": "Bad credentials"}, {}
        base = f"/repos/{github.repository}"
        with github.lock:
            if parts.path == "/graphql" and github.viewer_is_known:
                return 200, {"data": {"viewer": {"login": github.writer["login"]}}}, {}
            if parts.path == "/user":
                return (200, github.writer, {}) if github.login_is_known else (403, DENIED, {})
            if not parts.path.startswith(f"{base}/"):
                return 404, {"message": "Not Found"}, {}
            rest = parts.path.removeprefix(base)
            if method != "GET" and not github.can_write:
                return 403, DENIED, {}
            if match := re.fullmatch(r"/issues/(\d+)/comments", rest):
                return self._comments(method, int(match[1]), query, body)
            if match := re.fullmatch(r"/issues/comments/(\d+)", rest):
                return self._comment(method, int(match[1]), body)
            if rest == "/pulls" and method == "GET":
                return self._page([pull for pull in github.pulls if _is_asked_for(pull, query)], query)
        return 404, {"message": "Not Found"}, {}

    def _comments(self, method: str, issue: int, query: dict[str, str], body: Any) -> tuple[int, Any, dict[str, str]]:
        if method == "GET":
            mine = [comment for _, comment in sorted(self.github.comments.items()) if comment["issue"] == issue]
            return self._page(mine, query)
        if (refused := _refused(body)) is not None:
            return refused
        return 201, self.github.add(body["body"], issue, self.github.writer), {}

    def _comment(self, method: str, number: int, body: Any) -> tuple[int, Any, dict[str, str]]:
        comment = self.github.comments.get(number)
        if comment is None:
            return 404, {"message": "Not Found"}, {}
        if method == "DELETE":
            del self.github.comments[number]
            return 204, None, {}
        if method == "PATCH":
            if (refused := _refused(body)) is not None:
                return refused
            comment["body"] = body["body"]
        return 200, comment, {}

    def _page(self, items: list[Any], query: dict[str, str]) -> tuple[int, Any, dict[str, str]]:
        size, page = min(int(query.get("per_page", 30)), 100), int(query.get("page", 1))
        parts = urlsplit(self.path)
        others = "&".join(f"{name}={value}" for name, value in query.items() if name != "page")
        link = f'<{self.github.url}{parts.path}?{others}&page={page + 1}>; rel="next"'
        return 200, items[(page - 1) * size : page * size], {"Link": link} if page * size < len(items) else {}


def _is_asked_for(pull: dict[str, Any], query: dict[str, str]) -> bool:
    owner, _, branch = query.get("head", "").partition(":")
    repository = pull["head"]["repo"] or {"full_name": ""}
    is_there = not owner or (repository["full_name"].startswith(f"{owner}/") and pull["head"]["ref"] == branch)
    return is_there and query.get("state", "open") in (pull["state"], "all")


def _refused(body: Any) -> tuple[int, Any, dict[str, str]] | None:
    text = body.get("body") if isinstance(body, dict) else None
    if not isinstance(text, str) or not text.strip():
        return 422, {"message": "Validation Failed", "errors": [{"message": "Body cannot be blank"}]}, {}
    if len(text.encode("utf-16-le")) // 2 > MOST_CHARACTERS:
        return 422, {"message": "Validation Failed", "errors": [{"message": "Body is too long"}]}, {}
    return None


def pull(number: int = 7, head: str = "a" * 40, repository: str = "stranger/shop", ref: str = "fix") -> dict[str, Any]:
    """An open pull request as the API lists it."""
    return {
        "number": number,
        "state": "open",
        "head": {"sha": head, "ref": ref, "repo": {"full_name": repository}},
        "base": {"ref": "main", "repo": {"full_name": "acme/shop"}},
    }


def main(port_file: Path, state_file: Path) -> None:
    """Serve until killed; `state_file` holds comments and log as JSON."""
    with GitHubServer() as github:

        def save() -> None:
            with github.lock:
                state = {"comments": list(github.comments.values()), "log": [asdict(entry) for entry in github.log]}
                state_file.write_text(json.dumps(state), encoding="utf-8")

        github.on_change = save
        save()
        port_file.write_text(github.url, encoding="utf-8")
        threading.Event().wait()


__all__ = ["BOT", "DENIED", "TOKEN", "Fault", "GitHubServer", "Logged", "pull"]

if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
