"""Print to a terminal or a CI log: reports on standard output, progress on standard error.

No other module prints. A CI runner obeys commands that it finds in a log, and names, paths, digests and exception texts
may come from a stranger, so everything is made inert here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from export_gate import __version__
from export_gate.report.escape import log_text
from export_gate.wall.words import count

# A hook that has nothing to do prints a few lines: what only other commands need is imported where they print.
if TYPE_CHECKING:
    import click

    from export_gate.github.workflow_commands import Annotation
    from export_gate.outcome.judging import Outcome
    from export_gate.run.interpreter import Interpreter
    from export_gate.run.launch import Listener
    from export_gate.wall.contract import Job


def color() -> bool:
    """Whether standard output shows colours: a terminal, unless NO_COLOR is set."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def say(text: object) -> None:
    """Print lines on standard output; none of them is a command to a CI runner."""
    _write(sys.stdout, log_text(str(text)))


def complain(text: object) -> None:
    """Print lines on standard error; none of them is a command to a CI runner."""
    _write(sys.stderr, log_text(str(text)))


def _write(stream: TextIO, text: str) -> None:
    stream.write(f"{text}\n")
    stream.flush()


def order(line: Annotation | str) -> None:
    """Print a line of a workflow's log: an annotation is the one command that we give the runner on purpose."""
    from export_gate.github.workflow_commands import Annotation, annotate

    if isinstance(line, Annotation):
        _write(sys.stdout, annotate(line))
    else:
        say(line)


def show_document(text: str) -> None:
    """Print a document of `report.formats`, whose format has made it inert already."""
    import click

    # None lets click decide, which strips styles if the output is not a terminal.
    click.echo(text, nl=False, color=True if color() else None)


def complain_of_usage(error: click.ClickException) -> None:
    """Print click's own words for a wrong command line, which repeat it."""
    import io

    words = io.StringIO()
    error.show(file=words)
    complain(words.getvalue().rstrip("\n"))


def complain_of_bug(error: BaseException) -> None:
    """Print the traceback, whose messages may quote anything."""
    import traceback

    complain("".join(traceback.format_exception(error)).rstrip("\n"))


def route_warnings() -> None:
    """Print Python's own warnings through `complain` too, because they quote paths and values."""
    import warnings

    def show_warning(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,  # noqa: ARG001
        line: str | None = None,
    ) -> None:
        complain(warnings.formatwarning(message, category, filename, lineno, line).rstrip("\n"))

    warnings.showwarning = show_warning


def show(outcome: Outcome, folder: Path | None = None) -> None:
    """Print the terminal report; `folder` is where the run's report.md was written, if it was."""
    from export_gate.report.render import render

    place = "the Markdown report" if folder is None else str(folder / "report.md")
    show_document(render(outcome.report, "terminal", color=color(), report_file=place))


@contextmanager
def follow(
    *, quiet: bool, last_s: Callable[[Sequence[str]], Mapping[str, float]] = lambda _: {}
) -> Iterator[Callable[[Interpreter, tuple[Job, ...]], Listener]]:
    """Progress on standard error: live on a terminal, plain lines elsewhere, nothing if quiet.

    Args:
        quiet: whether to show nothing.
        last_s: how long each of these models took last, where that is known.
    """
    from export_gate.cli.progress import LiveProgress, PlainProgress

    def header(python: Interpreter, jobs: tuple[Job, ...]) -> str:
        return f"export-gate {__version__}: {count(len(jobs), 'model')} with {python.path} ({python.reason})"

    if quiet:
        yield lambda _python, _jobs: lambda _event: None
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import Progress

        from export_gate.cli.progress import columns

        with Progress(*columns(), console=Console(stderr=True), transient=True) as progress:
            # At once, as the config, git and the imports take a while.
            first = progress.add_task("export-gate", total=None, what="read the config", count="", left="")

            def announce(python: Interpreter, jobs: tuple[Job, ...]) -> Listener:
                # A path may contain what rich takes for markup.
                progress.console.print(log_text(header(python, jobs)), markup=False, highlight=False)
                progress.remove_task(first)
                targets = {job.contract.name: len(job.contract.targets) for job in jobs}
                return LiveProgress(progress, targets, last_s(tuple(targets)))

            yield announce
    else:

        def announce_plainly(python: Interpreter, jobs: tuple[Job, ...]) -> Listener:
            complain(header(python, jobs))
            return PlainProgress(complain)

        yield announce_plainly
