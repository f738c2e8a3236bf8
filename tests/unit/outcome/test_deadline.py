"""Results that would take hours to judge are reported as no results, long before the job ends."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import report_samples as samples

from export_gate.github import shown
from export_gate.github.context import read_context
from export_gate.github.fork import load_from_stranger
from export_gate.github.shown import Publication, load
from export_gate.outcome.deadline import OverdueError, deadline
from export_gate.report.record import Report
from export_gate.report.render import Format
from export_gate.report.results import write_results

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no such signal")


def _match(*_: object) -> None:
    re.match("(a+)+$", "a" * 60 + "b")


def _stubborn(*_: object) -> None:
    while True:
        try:
            time.sleep(60)
        except Exception:  # noqa: BLE001 - as code that takes it for an error of its own
            _match()


@pytest.mark.slow
@pytest.mark.parametrize("work", [_match, _stubborn])
def test_work_without_an_end_is_interrupted(work: Callable[[], None]):
    """Also inside of a pattern that a text makes slow, and more than once."""
    before, start = signal.getsignal(signal.SIGALRM), time.monotonic()
    with pytest.raises(OverdueError, match="more than 0 s"), deadline(0.1):
        work()
    assert time.monotonic() - start < 10
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_such_results_are_no_results(monkeypatch: pytest.MonkeyPatch):
    """The report says so in place of a verdict."""
    monkeypatch.setattr(shown, "rejudge", _match)
    monkeypatch.setattr(shown, "JUDGING_S", 0.1)
    found = load(Publication(results=Path("results.json")), read_context({}))
    assert found.report.verdict == "broken"
    assert "results.json: to read and judge the results takes more than 0 s" in found.text


@pytest.mark.slow
def test_a_report_of_a_stranger_is_tried_before_it_is_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What is published is rendered without a time limit, with the token of the default branch."""
    path = tmp_path / "results.json"
    write_results(samples.green(), path)
    real = shown.render

    def rendered(report: Report, format_: Format) -> str:
        if report.verdict == "verified" and format_ == "comment":
            _match()
        return real(report, format_)

    monkeypatch.setattr(shown, "render", rendered)
    monkeypatch.setattr(shown, "STRANGER_S", 3)

    assert load_from_stranger(Publication(results=path), read_context({})).report.verdict == "broken"
