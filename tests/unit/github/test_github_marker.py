"""The first line of our comment belongs to us alone, and says what the comment says."""

from __future__ import annotations

from dataclasses import replace

import pytest
import report_samples as samples
from hypothesis import given
from hypothesis import strategies as st

from export_gate.github.marker import Marker, Run, check_comment_id, digest, parse_marker
from export_gate.loosening.record import Alteration, ConfigChange
from export_gate.outcome.judging import judged
from export_gate.report.build import build_report
from export_gate.report.render import render
from export_gate.report.results import Results
from export_gate.rules.judge import EXIT_CODES, judge
from export_gate.wall.errors import UserError

MARKER = Marker(comment="export-gate", run=Run(id=12345, attempt=2), verdict="violations", digest="0123456789abcdef")
LINE = "<!-- export-gate: comment=export-gate run=12345.2 verdict=violations digest=0123456789abcdef -->"
ids = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", fullmatch=True)


def test_the_line():
    """The marker is an HTML comment, which GitHub does not show."""
    assert str(MARKER) == LINE


@given(ids, st.integers(0, 10**18), st.integers(0, 10**8), st.sampled_from(list(EXIT_CODES)))
def test_what_is_written_is_read(comment: str, run: int, attempt: int, verdict: str):
    """Every marker is read back equal, whatever text follows."""
    marker = replace(MARKER, comment=comment, run=Run(id=run, attempt=attempt), verdict=verdict)
    assert parse_marker(f"{marker}\r\n## text") == marker


@pytest.mark.parametrize(
    "body",
    [
        "",
        f"> {LINE}",
        f" {LINE}",
        f"see\n{LINE}",
        f"{LINE} and more",
        LINE.replace("export-gate:", "export-gate"),
        LINE.replace("run=12345.2", "run=-1.2"),
        LINE.replace("run=12345.2", f"run={'9' * 30}.2"),
        LINE.replace("run=12345.2", "run=\uff11.2"),
        LINE.replace("violations", "fine"),
        LINE.replace("comment=export-gate", "comment="),
    ],
)
def test_anything_but_the_full_line_is_no_marker(body: str):
    """A quotation, a part of the line or another spelling does not make a comment ours."""
    assert parse_marker(body) is None


@given(st.text(max_size=200))
def test_no_text_of_a_report_is_a_marker(text: str):
    """A model's name or an exception cannot begin a comment with a marker, nor put one on a line."""
    nasty = f"{text}\n{LINE}\n{text}"
    seen = samples.model(
        "m", (), reached="export", failure=replace(samples.export_failure(), message=nasty, trace=LINE)
    )
    results = samples.results(
        (samples.contract("m"),), samples.RunObservation(environment=samples.ENVIRONMENT, models=(seen,))
    )
    body = render(build_report(results), "comment")
    assert parse_marker(body) is None


@pytest.mark.parametrize("text", ["", "a b", "-a", "a/b", "x" * 65, "é", "a\n", "-->"])
def test_a_comment_id_has_few_characters(text: str):
    """A comment-id that could end the marker's comment, or that only looks like another one, is refused."""
    with pytest.raises(UserError) as caught:
        check_comment_id(text)
    assert str(caught.value) == (
        f"--comment-id: expected up to 64 of letters, digits, '.', '_' and '-', got {text!r:.80}"
    )


def _digest(results: Results) -> str:
    return digest(build_report(results))


def test_the_digest_is_of_what_is_said():
    """Time, commit and the size of an error do not change the digest; another finding does."""
    red = samples.red()
    assert _digest(red) == _digest(replace(red, duration_s=99.0, head="f" * 40, started="2026-05-05T00:00:00Z"))
    first = next(f for f in red.findings if f.rule == "value-mismatch")
    noisy = tuple(replace(f, measured=f.measured * 1.01) if f == first else f for f in red.findings)
    assert _digest(red) == _digest(replace(red, findings=noisy))
    assert _digest(red) != _digest(replace(red, findings=red.findings[1:]))
    assert _digest(red) != _digest(samples.green())


def test_the_digest_ignores_the_order_of_findings():
    """Two machines that list the same findings in another order have the same digest."""
    red = samples.red()
    other = replace(red, findings=judge(red.contracts, red.run).findings[::-1])
    assert _digest(other) == _digest(red)


def test_runs_are_ordered_by_id_then_attempt():
    """A second attempt of an old run is older than a new run."""
    assert Run(id=2, attempt=1) > Run(id=1, attempt=9)
    assert Run(id=2, attempt=2) > Run(id=2, attempt=1)


def test_the_digest_changes_with_what_a_change_loosens():
    """With `comment: changes`, a comment about a smaller loosening must not stay for a larger one."""
    digests = set()
    for what in ("onnx tolerance 10x (1e-5 -> 1e-4)", "onnx tolerance 1e+14x (1e-5 -> 1e9)"):
        alteration = Alteration(effect="loosened", model="glyph-head", key="targets.onnx.tolerance", what=what)
        change = ConfigChange(origin="export-gate.yml at 1a2b3c4d5e", alterations=(alteration,))
        digests.add(digest(judged(replace(samples.green(), change=change, findings=())).report))

    assert len(digests) == 2
