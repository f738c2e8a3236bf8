"""Numbers have as many digits as are useful, and text fits its place."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from export_gate.report.filters import (
    EMOJI,
    WORDS,
    align,
    clip,
    clip_lines,
    count,
    duration,
    indent,
    measured,
    number,
    painter,
    share,
    size,
    tally,
    wrap,
)
from export_gate.report.record import STATES
from export_gate.rules.base import SEVERITIES
from export_gate.rules.judge import EXIT_CODES


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (12.0, "12"),
        (0.25, "0.25"),
        (3.14159, "3.14"),
        (3.1e-05, "3.1e-05"),
        (1234567.0, "1.2e+06"),
        (math.nan, "NaN"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
    ],
)
def test_number(value: float, text: str):
    """Three digits, or scientific notation with two."""
    assert number(value) == text


def test_measured_is_told_from_allowed():
    """A measurement just above its bound does not read as equal to it."""
    assert measured(1.0004e-05, 1.0e-05) == "1.0004e-05"
    assert measured(3.1e-03, 3.4e-05) == "3.1e-03"
    assert measured(1.0, 1.0) == "1"


@given(st.floats(1e-12, 1e6), st.floats(1e-12, 1e6))
def test_different_numbers_look_different(one: float, other: float):
    """Measured and allowed are printed alike only if they are equal."""
    assert (measured(one, other) == number(other)) == (one == other)


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (0.0, "exact"),
        (0.0001, "<1%"),
        (0.061, "6%"),
        (0.997, "99%"),
        (1.0, "100%"),
        (1.0001, "1.1x"),
        (2.0, "2.0x"),
        (91.2, "91x"),
        (7.4e4, "70,000x"),
        (1e7, "10,000,000x"),
        (1e9, "1e+09x"),
        (math.inf, "inf"),
    ],
)
def test_share(ratio: float, text: str):
    """Percent within the tolerance, multiples above it; only the bound itself is called 100%."""
    assert share(ratio) == text


@pytest.mark.parametrize(
    ("bytes_", "text"),
    [(0, "0 B"), (999, "999 B"), (1_000, "1.0 kB"), (1_312_774, "1.3 MB"), (440_000_000, "440 MB"), (10**12, "1.0 TB")],
)
def test_size(bytes_: int, text: str):
    """Powers of 1000."""
    assert size(bytes_) == text


@pytest.mark.parametrize(("value", "text"), [(0, "0"), (999, "999"), (84_131, "84k"), (109_482_240, "109M")])
def test_count(value: int, text: str):
    """Parameters as people say them."""
    assert count(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (0.44, "0.4 s"), (41.3, "41 s"), (59.7, "1 min"), (125.0, "2 min 5 s"), (3780.0, "1 h 3 min")],
)
def test_duration(seconds: float, text: str):
    """Seconds, minutes, hours."""
    assert duration(seconds) == text


def test_tally():
    """Counts agree with their nouns; zero counts are omitted."""
    assert tally(["violation", "note", "note"]) == "1 violation, 2 notes"


def test_clip_says_what_is_missing():
    """A cut text says how much more there was."""
    assert clip("abcdefgh", 5) == "abcde ... (3 more characters)"
    assert clip("abcde", 5) == "abcde"
    assert clip("abcde", None) == "abcde"


def test_clip_lines_keeps_both_ends():
    """Suggestions come first and the exception last: the middle of a traceback is omitted."""
    assert clip_lines([str(line) for line in range(10)], 4) == "0\n... (6 more lines)\n7\n8\n9"
    assert clip_lines(["a", "b"], None) == "a\nb"


@given(st.text(alphabet="ab cd-", max_size=400), st.integers(0, 8))
def test_wrapped_lines_fit(text: str, by: int):
    """No line of the terminal report is longer than 100 columns, and no character of a text is lost."""
    for shown in (wrap(text, by), indent(text, by)):
        assert all(len(line) <= 100 for line in shown.splitlines())
        assert "".join(shown.split()) == "".join(text.split())


def test_align_pads_by_what_is_seen():
    """Wide characters and colours do not shift a column."""
    shown = align("model\tonnx\n深い\tok\n\x1b[32mx\x1b[0m\tFAIL\n")
    assert shown == "model  onnx\n深い   ok\n\x1b[32mx\x1b[0m      FAIL"


def test_align_shortens_long_names():
    """A long model name is shortened, but not the verdict next to it."""
    first, second = align(f"model\tonnx\n{'m' * 120}\tFAIL value-mismatch\n").splitlines()
    assert second == f"{'m' * 76}...  FAIL value-mismatch"
    assert cell_len(second) == 100
    assert first.index("onnx") == second.index("FAIL")


def test_paint():
    """Styles only where colour is on, and only for words that have one."""
    assert painter(color=True)("FAIL") == "\x1b[1;31mFAIL\x1b[0m"
    assert painter(color=True)("x", "nothing") == "x"
    assert painter(color=False)("FAIL") == "FAIL"


def test_every_state_has_a_sign_and_a_word():
    """No verdict, state or severity is left without a sign, and failure never looks like success."""
    for name in (*STATES, *SEVERITIES, *EXIT_CODES):
        assert name in EMOJI
        assert name in WORDS
    assert [name for name in EMOJI if EMOJI[name] == "✅"] == ["verified", "ok"]
    assert [name for name in WORDS if WORDS[name] == "ok"] == ["verified", "ok"]


def test_long_lines_go_on_at_a_word():
    """Names stay whole, so that they can be copied; a traceback keeps its shape; nothing is wider than a screen."""
    name = "normal-1@batch=12,length=12"
    text = f'also at: {", ".join([name] * 6)}\n  File "src/model.py", line 3\n{"x" * 150}'
    lines = indent(text, 4).split("\n")
    assert sum(line.count(name) for line in lines) == 6
    assert '      File "src/model.py", line 3' in lines
    assert max(map(len, lines)) <= 100
