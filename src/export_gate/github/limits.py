"""Decide when to repeat a request: read GitHub's limits and outages from status and headers."""

from __future__ import annotations

import email.utils
import time
from collections.abc import Mapping

LIMIT_S = 60.0
"""GitHub's advice for a secondary limit without a stated duration."""


def retry_after(status: int, headers: Mapping[str, str], message: str, attempt: int) -> float | None:
    """Seconds until another attempt may help: a limit's own value, or 1, 2, 4 seconds after an outage."""
    asked = _seconds(headers.get("retry-after"))
    is_limited = status == 429 or (  # noqa: PLR2004
        status == 403 and (asked is not None or "rate limit" in message.lower())  # noqa: PLR2004
    )
    if is_limited:
        return next((wait for wait in (asked, _reset(headers)) if wait is not None), LIMIT_S)
    if status >= 500:  # noqa: PLR2004
        return 2.0**attempt if asked is None else asked
    return None


def _reset(headers: Mapping[str, str]) -> float | None:
    """Seconds until an exhausted primary limit is reset."""
    if headers.get("x-ratelimit-remaining") != "0":
        return None
    try:
        return max(1.0, float(headers["x-ratelimit-reset"]) - time.time())
    except (KeyError, ValueError):
        return None


def _seconds(text: str | None) -> float | None:
    """Retry-After, which is a number of seconds or a date."""
    if text is None:
        return None
    if text.strip().isdecimal():
        return float(text)
    try:
        return max(1.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError):
        return None
