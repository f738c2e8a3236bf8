"""A report fits its limit by leaving out what matters least, and says so."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import pytest
import report_samples as samples
from hypothesis import given, settings
from hypothesis import strategies as st

from export_gate.report.budget import COMMENT_CHARACTERS, SUMMARY_BYTES, characters
from export_gate.report.build import build_report
from export_gate.report.record import ChangeView, Report
from export_gate.report.render import Format, render

RED = build_report(samples.red())


@cache
def _crowd_report() -> Report:
    """Made where it is asked for: seconds that most test processes save."""
    return build_report(samples.crowd(500))


@cache
def _crowd(kind: Format) -> str:
    return render(_crowd_report(), kind)


@pytest.mark.slow
def test_500_violations_fit_a_comment():
    """With 500 violations, the comment has the verdict, a table and the worst findings, and says what is missing."""
    text = _crowd("comment")
    assert characters(text) <= COMMENT_CHARACTERS - 1_024
    assert text.startswith("## ❌ export-gate: 500 of 1000 models verified, 500 violations\n")
    full = text.count("\n#### ❌")
    assert 5 <= full <= 10
    assert "#### ❌ `model-499` onnx, output `logits`: value-mismatch" in text
    (left_out,) = re.findall(r"(?m)^> Omitted.*$", text)
    listed = full + len(re.findall(r"(?m)^- ❌", text))
    rows = len(re.findall(r"(?m)^\| `(?:fine|model)-", text))
    assert left_out == (
        f"> Omitted to fit here: {1000 - rows} models of the table; {500 - listed} findings; the details of "
        f"{listed - full} findings; stages, control inputs and artifacts. The full report is in `report.md`."
    )
    assert listed > 50
    assert rows > 500


@pytest.mark.slow
def test_the_worst_models_keep_their_rows():
    """A verified model loses its row before a failed one does."""
    text = _crowd("comment")
    assert len(re.findall(r"(?m)^\| `model-", text)) == 500


@pytest.mark.slow
def test_the_worst_findings_keep_their_details():
    """The findings shown in full are the first of the report, in its order."""
    text = _crowd("comment")
    shown = re.findall(r"(?m)^#### ❌ `(model-\d+)`", text)
    assert shown == [view.finding.model for view in _crowd_report().findings[: len(shown)]]
    assert len(shown) >= 5


@pytest.mark.slow
def test_500_violations_fit_a_summary():
    """The job summary contains all of them, within GitHub's limit of bytes."""
    text = _crowd("summary")
    assert len(text.encode()) <= SUMMARY_BYTES
    assert text.count("#### ❌") + text.count("\n- ❌") == 500


@pytest.mark.slow
def test_the_report_file_leaves_nothing_out():
    """The file that the other formats point to has everything."""
    text = _crowd("markdown")
    assert text.count("#### ❌") == 500
    assert "Omitted" not in text


@pytest.mark.slow
def test_a_terminal_shows_the_first_twenty_in_full():
    """The log of 500 violations does not have 500 pages."""
    text = _crowd("terminal")
    assert len(re.findall(r"(?m)^  run:  export-gate run", text)) == 20
    flat = " ".join(text.split())
    assert "Omitted: the details of 480 findings. The full report is in the Markdown report." in flat


def test_nothing_is_left_out_without_need():
    """A report that fits is whole."""
    assert "Omitted" not in render(RED, "comment")


def test_the_appendix_goes_first():
    """If one character is missing, the appendix is left out, and no finding."""
    whole = render(RED, "comment")
    text = render(RED, "comment", budget=characters(whole) - 1)
    assert "> Omitted to fit here: stages, control inputs and artifacts. The full report is in" in text
    assert text.count("#### ❌") == 3


@settings(max_examples=20)
@given(st.integers(700, 12_000))
def test_any_budget_is_kept(budget: int):
    """For any budget, the text is within it, starts with the verdict and never ends in the middle."""
    text = render(RED, "comment", budget=budget)
    assert characters(text) <= budget
    assert text.startswith(f"## ❌ {RED.headline}\n")
    assert text.endswith("</sub>\n")
    assert text.count("<details>") == text.count("</details>")
    assert text.count("```") % 2 == 0


@settings(max_examples=10)
@given(st.integers(1_000, 30_000))
def test_bytes_are_bytes(budget: int):
    """A summary is measured in bytes; an emoji has several."""
    assert len(render(RED, "summary", budget=budget).encode()) <= budget


@pytest.mark.slow
def test_a_larger_budget_shows_no_fewer_findings():
    """More room never hides a finding."""
    report = build_report(samples.crowd(100))
    texts = [render(report, "comment", budget=budget) for budget in (4_000, 10_000, 20_000, 40_000)]
    counts = [len(re.findall(r"(?m)^(?:#### |- )❌", text)) for text in texts]
    assert counts == sorted(counts)
    assert len(set(counts)) == len(counts)


def test_an_impossible_budget_is_an_error():
    """A budget below the verdict is refused instead of answered with a fragment."""
    with pytest.raises(ValueError, match=r"^a budget of 10 is below the verdict alone, which takes \d+$"):
        render(RED, "comment", budget=10)


def test_lines_of_a_stranger_give_way_to_the_verdict():
    """Texts without an end, as anybody can write them into results, leave no comment empty."""
    change = ChangeView(origin="b" * 100_000, loosened=("limit 120 -> 1",), otherwise=(), fails=False)
    report = replace(build_report(samples.red()), evidence="e" * 100_000, change=change)

    text = render(report, "comment")

    assert characters(text) <= COMMENT_CHARACTERS
    assert report.headline in text
    assert "limit 120" in text
    assert "Lines that were too long are left out." in text


@pytest.mark.slow
def test_problems_give_way_too():
    """500 models that could not be checked fit as well, and they are counted."""
    one = build_report(samples.problem())
    report = replace(one, problems=one.problems * 500)
    text = render(report, "comment")
    assert characters(text) <= COMMENT_CHARACTERS
    shown = text.count("#### ⛔")
    assert f"{500 - shown} models that could not be checked" in text


@pytest.mark.slow
def test_one_giant_message_fits():
    """A message of a megabyte is shortened, and the report file has it whole."""
    red = samples.red()
    giant = replace(red.findings[0], message="x" * 1_000_000, hint="y" * 1_000_000, details=("z" * 1_000_000,))
    report = build_report(replace(red, findings=(giant, *red.findings[1:])))
    text = render(report, "comment")
    assert "xxx ... (999200 more characters)" in text
    assert "Omitted" not in text
    assert "x" * 1_000_000 in render(report, "markdown")
