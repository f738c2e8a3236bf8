"""Template filters: format numbers with few digits, cut text to length, escape text for its destination."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

from rich.cells import cell_len, set_cell_size

from export_gate.report import escape
from export_gate.report.record import Row
from export_gate.rules.base import SEVERITIES, Finding
from export_gate.wall import words

TERMINAL_COLUMNS = 100
SHORTEST_NAME = 12
"""Minimum width of a table's first column."""


def number(value: float) -> str:
    """Three digits, or scientific notation with two: 12, 0.25, 3.1e-05."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if value == int(value) and abs(value) < 1e6:  # noqa: PLR2004  # a count up to there
        return str(int(value))
    return words.rounded(value)


def measured(value: float, allowed: float) -> str:
    """`value` with enough digits to distinguish it from `allowed`, e.g. `1.004e-05` if `allowed` is `1.000e-05`."""
    digits = _digits_apart(value, allowed)
    return number(value) if digits is None else f"{value:.{digits}e}"


def _digits_apart(one: float, other: float) -> int | None:
    """Decimals of scientific notation at which the two differ; None if `number` shows it or no digits do."""
    if one == other or number(one) != number(other):
        return None
    return next((digits for digits in range(2, 17) if f"{one:.{digits}e}" != f"{other:.{digits}e}"), None)


def share(ratio: float) -> str:
    """An error as a share of its tolerance: `exact`, `6%`, or `91x` if it is over."""
    if ratio == 0:
        return "exact"
    if ratio <= 1:
        return "<1%" if ratio < 0.01 else f"{math.floor(100 * ratio)}%"  # noqa: PLR2004  # 100% is the bound itself
    if math.isinf(ratio):
        return "inf"
    if ratio < 10:  # noqa: PLR2004  # one more digit below ten
        return f"{math.ceil(10 * ratio) / 10:.1f}x"
    if ratio < 1e4:  # noqa: PLR2004  # above, one digit says it
        return f"{ratio:.0f}x"
    return f"{float(f'{ratio:.0e}'):,.0f}x" if ratio < 1e9 else f"{ratio:.0e}x"  # noqa: PLR2004


def size(count_bytes: int) -> str:
    """Bytes in powers of 1000: 512 B, 1.3 MB."""
    return _scaled(count_bytes, (" B", " kB", " MB", " GB", " TB"))


def count(value: int) -> str:
    """A number of things with SI suffix: 950, 1.2k, 110M."""
    return _scaled(value, ("", "k", "M", "G", "T"))


def _scaled(value: int, units: Sequence[str]) -> str:
    """The number in the first unit in which it has at most three digits before the point, else in the last one."""
    shown = float(value)
    for place, unit in enumerate(units[:-1]):
        if shown < 999.5:  # noqa: PLR2004  # where three digits round up to four
            is_exact = place == 0 or shown >= 9.95  # noqa: PLR2004  # where tenths stop to matter
            return f"{shown:.0f}{unit}" if is_exact else f"{shown:.1f}{unit}"
        shown /= 1000
    return f"{shown:.1f}{units[-1]}"


def duration(seconds: float) -> str:
    """0.4 s, 41 s, 2 min 5 s, 1 h 3 min."""
    if seconds < 9.95:  # noqa: PLR2004  # where tenths stop to matter
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:  # noqa: PLR2004
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:  # noqa: PLR2004
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def how_often(finding: Finding) -> str:
    """`; 15 of 140 inputs` or `; all 48 inputs`, or else ` and 2 more times`, after the worst one."""
    if finding.tried > 1 and finding.occurrences == finding.tried:
        return f"; all {words.count(finding.tried, 'input')}"
    if finding.tried:
        return f"; {finding.occurrences} of {words.count(finding.tried, 'input')}"
    return f" and {words.count(finding.occurrences - 1, 'more time')}" if finding.occurrences > 1 else ""


def tally(marks: Sequence[str]) -> str:
    """`3 violations, 1 waived, 1 warning`."""
    counted = [(marks.count(mark), mark) for mark in SEVERITIES]
    parts = [words.count(number_of, noun) for number_of, noun in counted if number_of]
    # After the violations, if there are any: True is 1.
    parts.insert("violation" in marks, f"{marks.count('waived')} waived")
    return ", ".join(part for part in parts if part != "0 waived")


def clip(text: str, characters: int | None) -> str:
    """The first `characters` of `text` and the number of omitted ones; None cuts nothing."""
    if characters is None or len(text) <= characters:
        return text
    return f"{text[:characters].rstrip()} ... ({len(text) - characters} more characters)"


def clip_lines(lines: Sequence[str], at_most: int | None) -> str:
    """The first lines (suggestions), the last ones (a traceback's exception) and the number of omitted ones."""
    if at_most is None or len(lines) <= at_most:
        return "\n".join(lines)
    head = at_most // 4
    tail = at_most - head
    return "\n".join([*lines[:head], f"... ({len(lines) - at_most} more lines)", *lines[-tail:]])


def wrap(text: str, indent: int = 0) -> str:
    """Wrap text to the terminal's width, with each line indented; longer words are broken."""
    margin = " " * indent
    return textwrap.fill(
        text, TERMINAL_COLUMNS, initial_indent=margin, subsequent_indent=margin, break_on_hyphens=False
    )


def indent(text: str, by: int) -> str:
    """Indent lines for a terminal; a line that is too long is wrapped, between words if possible."""
    folder = textwrap.TextWrapper(
        TERMINAL_COLUMNS - by, break_on_hyphens=False, expand_tabs=False, replace_whitespace=False
    )
    parts = [part for line in escape.visible(text).split("\n") for part in folder.wrap(line) or [""]]
    return "\n".join(" " * by + part.rstrip() for part in parts)


def align(text: str) -> str:
    """Align lines of tab-separated cells in columns; the first column shrinks if the table is too wide."""
    table = [line.split("\t") for line in text.splitlines() if line]
    widths = [max(map(_width, column)) for column in zip_longest(*table, fillvalue="")]
    spare = TERMINAL_COLUMNS - sum(widths[1:]) - 2 * len(widths[1:])
    widths[:1] = [min(first, max(spare, SHORTEST_NAME)) for first in widths[:1]]
    return "\n".join("  ".join(map(_padded, line, widths)).rstrip() for line in table)


def _width(text: str) -> int:
    return cell_len(re.sub(escape.ANSI, "", text))


def _padded(cell: str, width: int) -> str:
    if _width(cell) > width:
        return set_cell_size(cell, width - 3) + "..."
    return cell + " " * (width - _width(cell))


EMOJI = {
    "verified": "✅", "violations": "❌", "problem": "⛔", "broken": "💥",
    "ok": "✅", "failed": "❌", "warned": "⚠️", "skipped": "⏭️", "moot": "\N{EN DASH}", "not-applicable": "",
    "violation": "❌", "waived": "⏳", "warning": "⚠️", "note": "📝",
}  # fmt: skip
"""Verdicts, states and severities by shape, not by colour alone."""
WORDS = {
    "verified": "ok", "violations": "FAIL", "problem": "FAIL", "broken": "FAIL",
    "ok": "ok", "failed": "FAIL", "warned": "warn", "skipped": "not run", "moot": "-", "not-applicable": "",
    "violation": "FAIL", "waived": "waived", "warning": "warn", "note": "note",
}  # fmt: skip
"""The same as words, for terminals without emoji."""

_EXPLAINED = {"skipped": "not reached", "moot": "says nothing after the earlier failure"}


def legend(rows: Sequence[Row]) -> str:
    """The marks in a table of stages that do not explain themselves: `⏭️ not reached`; empty if there are none."""
    ladders = (ladder for row in rows for cell in row.cells for ladder in cell.ladders)
    states = {step.state for ladder in ladders for step in ladder.steps}
    return "; ".join(f"{EMOJI[state]} {text}" for state, text in _EXPLAINED.items() if state in states)


_STYLES = {"ok": "32", "FAIL": "1;31", "warn": "33", "waived": "33", "strong": "1", "faint": "2"}
"""ANSI styles by word or emphasis."""


def painter(*, color: bool) -> Callable[[str, str], str]:
    """The `paint` filter: ANSI styles by meaning, or nothing at all."""

    def paint(text: str, style: str = "") -> str:
        code = _STYLES.get(style or text)
        return f"\x1b[{code}m{text}\x1b[0m" if color and code else text

    return paint


FILTERS: dict[str, Callable[..., Any]] = {
    "md": escape.markdown,
    "prose": escape.prose,
    "code": escape.code,
    "fence": escape.fence,
    "terminal": escape.terminal,
    "number": number,
    "measured": measured,
    "share": share,
    "size": size,
    "count": count,
    "duration": duration,
    "plural": words.count,
    "tally": tally,
    "how_often": how_often,
    "clip": clip,
    "clip_lines": clip_lines,
    "wrap": wrap,
    "indent": indent,
    "align": align,
    "emoji": EMOJI.__getitem__,
    "legend": legend,
    "word": WORDS.__getitem__,
}
