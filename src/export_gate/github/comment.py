"""Keep one sticky comment per comment-id correct, even if others write at the same time.

GitHub does not have compare-and-swap, so a read follows every write, and its result decides the next step:

* Our comments start with our marker and are by the account that this token writes as. The lowest id is kept.
* A run never overwrites a newer run's comment; of two jobs of the same run and attempt, the worse verdict is kept.
* A write without a clear answer is not repeated before the comments have been read again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from export_gate.github.api import Api, ApiError
from export_gate.github.marker import Marker, Run, parse_marker
from export_gate.rules.judge import EXIT_CODES

Mode = Literal["always", "changes", "on-failure", "never"]
MODES: tuple[Mode, ...] = ("always", "changes", "on-failure", "never")
Decision = Literal["write", "newer", "worse", "unchanged", "not-needed"]
ROUNDS = 6
"""How often all comments are read before giving up on a comment that others keep changing."""
NOT_FOUND = 404
REFUSED = range(400, 500)
JOBS_OWN = "github-actions[bot]"
"""Who a job's own token writes as."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The conversation of a pull request."""

    repository: str
    number: int

    @property
    def thread(self) -> str:
        """API path of all its comments."""
        return f"/repos/{self.repository}/issues/{self.number}/comments"

    def one(self, comment: int) -> str:
        """API path of one comment."""
        return f"/repos/{self.repository}/issues/comments/{comment}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """The text to post: the marker, and the whole body, which starts with it."""

    marker: Marker
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """One of our existing comments."""

    id: int
    url: str
    marker: Marker


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """The result of posting."""

    what: Literal["created", "updated", "newer", "worse", "unchanged", "not-needed"]
    url: str = ""
    """The comment's URL; empty if there is no comment."""


def put_comment(api: Api, place: Place, mode: Mode, text: Text) -> Posted:
    """Create or update the comment with `text`, if it contains something new.

    Raises:
        ApiError: GitHub refused, or could not be reached.
    """
    session = _Session(api, place, text.marker.comment)
    attempt = 0
    for _ in range(ROUNDS):
        try:
            posted = _round(session, mode, text)
        except ApiError as error:
            if not api.pause(error, attempt):
                raise
            attempt += 1
        else:
            if posted is not None:
                return posted
    raise ApiError(0, f"others kept changing the comment; gave up after {ROUNDS} readings")


def decide(mode: Mode, mine: Marker, present: Sequence[Marker]) -> Decision:
    """Decide what to do, given the existing comments with the kept one first."""
    # Without a run id (outside of GitHub) there is no order, so the comment is written.
    if mine.run.id and any(marker.run > mine.run for marker in present):
        return "newer"
    if mine.run.id and any(marker.run == mine.run and _badness(marker) > _badness(mine) for marker in present):
        return "worse"
    if not present:
        return "not-needed" if mode == "on-failure" and mine.verdict == "verified" else "write"
    is_same = (present[0].verdict, present[0].digest) == (mine.verdict, mine.digest)
    return "unchanged" if mode == "changes" and is_same else "write"


def _badness(marker: Marker) -> int:
    return EXIT_CODES[marker.verdict]


def _rank(marker: Marker) -> tuple[Run, int]:
    return marker.run, _badness(marker)


def _round(session: _Session, mode: Mode, text: Text) -> Posted | None:
    """Read, write at most once, and read the result; None asks for another round."""
    ours = session.ours()
    decision = decide(mode, text.marker, [comment.marker for comment in ours])
    if decision != "write":
        session.remove(ours[1:], text.marker)
        return Posted(what=decision, url=ours[0].url if ours else "")
    if ours:
        return _update(session, ours, text)
    # Two jobs may both find no comment and both create one; reading again shows whose is the first.
    session.create(text.body)
    now = session.ours()
    if not now or now[0].marker != text.marker:
        return None  # another job was faster: keep its comment
    session.remove(now[1:], text.marker)
    return Posted(what="created", url=now[0].url)


def _update(session: _Session, ours: Sequence[Comment], text: Text) -> Posted | None:
    kept, *others = ours
    there = session.update(kept, text.body)
    if there is None or _rank(there) < _rank(text.marker):
        return None  # deleted, or overwritten by a job that had read before we wrote
    session.remove(others, text.marker)
    return Posted(what="updated", url=kept.url)


class _Session:
    """The comments of one place with one comment-id."""

    def __init__(self, api: Api, place: Place, comment_id: str) -> None:
        self._api = api
        self._place = place
        self._comment_id = comment_id
        self._login: str | None = None
        """The account that the token writes as; None before it was requested."""

    def ours(self) -> list[Comment]:
        """Our comments, the one to keep first."""
        found = [self._read(value) for value in self._api.pages(f"{self._place.thread}?per_page=100")]
        return sorted((comment for comment in found if comment is not None), key=lambda comment: comment.id)

    def create(self, body: str) -> None:
        """Write a new comment."""
        made = self._api.write("POST", self._place.thread, {"body": body})
        self._login = _login(made.get("user")) if isinstance(made, dict) else self._login

    def update(self, comment: Comment, body: str) -> Marker | None:
        """Change `comment` and read the result; None if it was deleted."""
        path = self._place.one(comment.id)
        try:
            self._api.write("PATCH", path, {"body": body})
            there = self._api.get(path)
        except ApiError as error:
            if error.status != NOT_FOUND or self._is_there(comment):
                raise
            return None
        return parse_marker(_text(there, "body"))

    def remove(self, others: Sequence[Comment], mine: Marker) -> None:
        """Delete our other comments, except those of a newer run or with a worse verdict of this run."""
        for comment in others:
            if decide("always", mine, [comment.marker]) == "write":
                try:
                    self._api.write("DELETE", self._place.one(comment.id))
                except ApiError as error:
                    if error.status != NOT_FOUND:
                        raise

    def _is_there(self, comment: Comment) -> bool:
        """Whether the comment still exists: GitHub also answers `not found` for what a token may not change."""
        return any(other.id == comment.id for other in self.ours())

    def _read(self, value: Any) -> Comment | None:
        """The comment, if it is one of ours."""
        number, marker = value.get("id") if isinstance(value, dict) else None, parse_marker(_text(value, "body"))
        if not isinstance(number, int) or marker is None or marker.comment != self._comment_id:
            return None
        return Comment(id=number, url=_text(value, "html_url"), marker=marker) if self._is_ours(value) else None

    def _is_ours(self, value: dict[str, Any]) -> bool:
        login = _login(value.get("user"))
        return bool(login) and login == self._own_login()

    def _own_login(self) -> str:
        """The account that the token writes as. Requested only if a comment has our marker, which others can forge."""
        if self._login is None:
            self._login = self._viewer() or self._user() or JOBS_OWN
        return self._login

    def _viewer(self) -> str:
        """The login by GraphQL, which also answers an app's token, with the `[bot]` that its comments have."""
        try:
            data = self._api.ask("query { viewer { login } }")
        except ApiError as error:
            if error.status not in REFUSED:
                raise
            return ""
        return _login(data.get("viewer")) if isinstance(data, dict) else ""

    def _user(self) -> str:
        """The login by REST, which answers only a user's token."""
        try:
            return _login(self._api.get("/user"))
        except ApiError as error:
            if error.status not in REFUSED:
                raise
            return ""


def _login(user: Any) -> str:
    return _text(user, "login")


def _text(value: Any, key: str) -> str:
    text = value.get(key) if isinstance(value, dict) else None
    return text if isinstance(text, str) else ""
