"""In CI a test that is skipped without a reason that is listed here fails the run: nothing is left out silently."""

from __future__ import annotations

import pytest

ALLOWED = {
    "no Python 3.9 on this machine": "An interpreter that is too old is not part of every runner's image.",
    "needs 8 GB of free memory": "The nightly model with 1.4 GB of weights does not fit every runner.",
    "mounting is not allowed here": "A small disk that runs full has to be mounted, which a container may not do.",
}
"""Reason of a skip -> why CI may skip for it."""


class StrictSkips:
    """A plugin that collects skips and turns those that are not listed into a failed run."""

    def __init__(self) -> None:
        self.unlisted: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test that was skipped."""
        self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a file that was skipped."""
        self._note(report)

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            reason = text.removeprefix("Skipped: ")
            if reason not in ALLOWED:
                self.unlisted.append(f"{report.nodeid}: {reason}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail the run."""
        if self.unlisted and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name what was skipped."""
        if self.unlisted:
            terminalreporter.section("skipped in CI without a reason in tests/harness/skips.py", red=True)
            for line in self.unlisted:
                terminalreporter.write_line(line)
