"""Sentences that the reports and a hook share."""

from __future__ import annotations

SHOWN_COMMIT = 10
"""Number of characters of a commit that reports show."""


def unchanged_words(commit: str, day: str) -> str:
    """`unchanged since 1a2b3c4d5e, verified 2026-11-30`; without the commit if it is empty."""
    sha, dash, dirty = commit.partition("-")
    since = f" since {sha[:SHOWN_COMMIT]}{dash}{dirty}" if commit else ""
    return f"unchanged{since}, verified {day}"
