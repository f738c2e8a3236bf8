"""Words that several sides share."""

from __future__ import annotations

import math
import signal

SHOWN_COMMIT = 10
"""Number of characters of a commit that reports show."""
EXACT = 1 << 53
"""Up to here, floats hold every whole number."""


def count(number: int, noun: str) -> str:
    """`1 case`, `3 cases`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def number_text(value: float) -> str:
    """A number as a config would have it: a whole one with all its digits, since `1e+06` may stand for 1000001."""
    is_whole = isinstance(value, int) or (value.is_integer() and abs(value) < EXACT)
    return str(int(value)) if is_whole else f"{value:g}"


def rounded(value: float, digits: int = 1) -> str:
    """A measured number: 16, 0.306, or 3.1e-05 with so many decimals; `nan` and `inf` as they are."""
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    exponent = int(f"{value:.{digits}e}".partition("e")[2])
    is_plain = -2 <= exponent <= 4  # noqa: PLR2004 - 0.01 to 99999 read well without an exponent
    if not is_plain:
        return f"{value:.{digits}e}"
    # One digit more than the other: there is no exponent to read.
    text = f"{value:.{max(digits + 1 - exponent, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def unchanged_words(commit: str, day: str) -> str:
    """`unchanged since 1a2b3c4d5e, verified 2026-11-30`; without the commit if it is empty."""
    sha, dash, dirty = commit.partition("-")
    since = f" since {sha[:SHOWN_COMMIT]}{dash}{dirty}" if commit else ""
    return f"unchanged{since}, verified {day}"


def printable(text: str) -> str:
    """Text of others on one line: what a terminal would interpret or not show is spelled out; other names stay."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def signal_name(number: int) -> str:
    """`SIGSEGV` for 11."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
