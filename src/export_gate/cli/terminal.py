"""What people see on the terminal: reports on standard output, progress on standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from export_gate import __version__

if TYPE_CHECKING:
    from export_gate.outcome.judging import Outcome
    from export_gate.run.interpreter import Interpreter
    from export_gate.run.launch import Listener
    from export_gate.wall.contract import Job


def color() -> bool:
    """Whether standard output shows colours: a terminal, unless NO_COLOR is set."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def show(outcome: Outcome, folder: Path | None = None) -> None:
    """Print the terminal report; `folder` is where the run's report.md was written, if it was."""
    from export_gate.report.render import render

    place = "the Markdown report" if folder is None else str(folder / "report.md")
    text = render(outcome.report, "terminal", color=color(), report_file=place)
    click.echo(text, nl=False, color=True if color() else None)


def counted(number: int, noun: str) -> str:
    """The number with its noun, e.g. `3 models`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


@contextmanager
def follow(*, quiet: bool) -> Iterator[Callable[[Interpreter, tuple[Job, ...]], Listener]]:
    """Progress on standard error: live on a terminal, plain lines elsewhere, nothing where quiet."""
    from export_gate.cli.progress import LiveProgress, PlainProgress

    def say(text: str) -> None:
        click.echo(text, err=True)

    def header(python: Interpreter, jobs: tuple[Job, ...]) -> str:
        return f"export-gate {__version__}: {counted(len(jobs), 'model')} with {python.path} ({python.reason})"

    if quiet:
        yield lambda _python, _jobs: lambda _event: None
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import Progress

        from export_gate.cli.progress import columns

        with Progress(*columns(), console=Console(stderr=True), transient=True) as progress:

            def announce(python: Interpreter, jobs: tuple[Job, ...]) -> Listener:
                progress.console.print(header(python, jobs), markup=False, highlight=False)
                return LiveProgress(progress, models=len(jobs))

            yield announce
    else:

        def announce_plainly(python: Interpreter, jobs: tuple[Job, ...]) -> Listener:
            say(header(python, jobs))
            return PlainProgress(say)

        yield announce_plainly
