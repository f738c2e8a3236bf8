"""Fit a report into a size limit: parts are chosen by priority, worst first, never cut, and omissions are listed.

Order of priority: verdict and table, models that could not be checked, findings on one line each with the worst ones
in full, all findings in full, the appendix (stages, control inputs, artifacts).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from export_gate.report.record import FindingView, ProblemView, Report, Row
from export_gate.rules.base import Severity
from export_gate.wall.words import count

COMMENT_CHARACTERS = 65_536
"""GitHub's limit for the body of a comment, marker included."""
MARKER_CHARACTERS = 1_024
"""Characters reserved for the marker if the caller does not give its length."""
SUMMARY_BYTES = 1024 * 1024
"""GitHub's limit for the summary of one step."""
LONGEST_LINE = 3_000
"""Characters of a line where not even the verdict fits; a line of what a change loosens has fewer, escaped."""
KEPT_IN_FULL = 10
"""Findings that keep their details even if others then lose their line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much of a single foreign text is shown; None means all of it."""

    characters: int | None = None
    """Characters of a message or a hint."""
    lines: int | None = None
    """Lines of a finding's details."""
    details: int | None = None
    """Characters of a finding's details."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The parts of a report that are laid out."""

    rows: tuple[Row, ...]
    problems: tuple[ProblemView, ...]
    full: tuple[FindingView, ...]
    """The report's first findings, with their details."""
    brief: tuple[FindingView, ...]
    """The next findings, on one line each."""
    appendix: bool
    limits: Limits
    left_out: tuple[str, ...] = ()
    """What the report file contains and this text omits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Amounts:
    rows: int = 0
    problems: int = 0
    full: int = 0
    listed: int = 0
    """Number of findings in full or on one line."""
    appendix: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What one format may show."""

    size: Callable[[str], int]
    limit: int | None
    """The limit, in units of `size`; None means no limit."""
    in_full: tuple[Severity, ...]
    """Severities that are shown in full if they fit; the others get one line each."""
    most_in_full: int | None = None
    limits: Limits = Limits()


def characters(text: str) -> int:
    """Length in UTF-16 units: at least as large as any count of characters that GitHub may use."""
    return len(text.encode("utf-16-le")) // 2


def utf8_bytes(text: str) -> int:
    """Length of the UTF-8 file."""
    return len(text.encode("utf-8"))


def fit(report: Report, draw: Callable[[Shown], str], allowance: Allowance) -> str:
    """Draw as much of `report` as is allowed.

    Raises:
        ValueError: not even the verdict fits.
    """
    # Usually everything fits, and drawing once is enough.
    drawn = draw(_shown(report, _everything(report, allowance), allowance))
    limit = allowance.limit
    if limit is None or allowance.size(drawn) <= limit:
        return drawn

    def needs(amounts: _Amounts) -> int:
        return allowance.size(draw(_shown(report, amounts, allowance)))

    if needs(_Amounts()) > limit:
        return _short_lines(draw(_shown(report, _Amounts(), allowance)), allowance, limit)
    return draw(_shown(report, _chosen(report, allowance, needs, limit), allowance))


def _short_lines(verdict: str, allowance: Allowance, limit: int) -> str:
    """The verdict alone without its longest lines, which results of a stranger may make as long as they like.

    Raises:
        ValueError: not even so much fits.
    """
    lines = verdict.splitlines()
    text = ""
    for line in lines:
        longer = f"{text}{line}\n" if allowance.size(line) <= LONGEST_LINE else text
        text = longer if allowance.size(longer) <= limit - LONGEST_LINE else text
    if not text:
        raise ValueError(f"a budget of {limit} is below the verdict alone, which takes {allowance.size(verdict)}")
    return f"{text}\nLines that were too long are left out.\n"


def _chosen(report: Report, allowance: Allowance, needs: Callable[[_Amounts], int], limit: int) -> _Amounts:
    """Choose for each kind, in order of priority, as many as fit together with what was chosen before."""
    most = _everything(report, allowance)

    def half(amounts: _Amounts) -> int:
        # Half of the room that is left, so that what comes later gets some of it.
        return (needs(amounts) + limit) // 2

    start = _Amounts()
    rows = _most(0, most.rows, lambda n: needs(replace(start, rows=n)), half(start))
    with_rows = replace(start, rows=rows)
    problems = _most(0, most.problems, lambda n: needs(replace(with_rows, problems=n)), half(with_rows))
    base = replace(with_rows, problems=problems)
    worst = min(KEPT_IN_FULL, most.full)
    kept = _most(0, worst, lambda n: needs(replace(base, full=n, listed=n)), half(base))
    listed = _most(kept, most.listed, lambda n: needs(replace(base, full=kept, listed=n)), limit)
    full = kept
    if listed == most.listed:
        full = _most(kept, most.full, lambda n: needs(replace(base, full=n, listed=listed)), limit)
    chosen = replace(base, full=full, listed=listed)
    whole = replace(chosen, appendix=True)
    return whole if needs(whole) <= limit else chosen


def _most(low: int, high: int, needs: Callable[[int], int], limit: int) -> int:
    """Return the largest number in [low, high] that fits; `low` is known to fit.

    Sizes grow nearly linearly, so linear interpolation guesses well; every other step bisects, in case it does not.
    """
    if high <= low:
        return low
    least, most = needs(low), needs(high)
    if most <= limit:
        return high
    is_straight = True
    while high - low > 1:
        share = (limit - least) / (most - least) if is_straight and most > least else 0.5
        middle = min(max(low + int(share * (high - low)), low + 1), high - 1)
        size, is_straight = needs(middle), not is_straight
        if size <= limit:
            low, least = middle, size
        else:
            high, most = middle, size
    return low


def _everything(report: Report, allowance: Allowance) -> _Amounts:
    full = sum(_is_full(view, allowance) for view in report.findings)
    return _Amounts(
        rows=len(report.rows),
        problems=len(report.problems),
        full=full if allowance.most_in_full is None else min(full, allowance.most_in_full),
        listed=len(report.findings),
        appendix=True,
    )


def _is_full(view: FindingView, allowance: Allowance) -> bool:
    """Notes that ask for nothing are one line everywhere; they are the last findings."""
    return view.severity in allowance.in_full and not view.asks_nothing


def _shown(report: Report, amounts: _Amounts, allowance: Allowance) -> Shown:
    return Shown(
        rows=report.rows[: amounts.rows],
        problems=report.problems[: amounts.problems],
        full=report.findings[: amounts.full],
        brief=report.findings[amounts.full : amounts.listed],
        appendix=amounts.appendix,
        limits=allowance.limits,
        left_out=_left_out(report, amounts, allowance),
    )


def _left_out(report: Report, amounts: _Amounts, allowance: Allowance) -> tuple[str, ...]:
    most = _everything(report, allowance)
    detailed = min(sum(_is_full(view, allowance) for view in report.findings), amounts.listed)
    missing = (
        (most.rows - amounts.rows, "{} of the table", "model"),
        (most.problems - amounts.problems, "{} that could not be checked", "model"),
        (most.listed - amounts.listed, "{}", "finding"),
        (detailed - amounts.full, "the details of {}", "finding"),
    )
    words = [text.format(count(number, noun)) for number, text, noun in missing if number > 0]
    return (*words, *(() if amounts.appendix else ("stages, control inputs and artifacts",)))
