"""Stages of the work on one model: announced before they begin, their exceptions turned into Failure records."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from export_gate.wall.contract import Job
from export_gate.wall.errors import UserError
from export_gate.wall.observation import Failure, Problem, Stage
from export_gate.worker.process.channel import Channel
from export_gate.worker.process.failures import failure_of


class StageFailed(Exception):  # noqa: N818 - an outcome, not an error of ours
    """A stage ended early; the work that depends on it is skipped."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


@contextmanager
def at_desk(job: Job, channel: Channel) -> Iterator[Desk]:
    """The job's desk: work on it ends at the user's mistake or a failed stage, and either is reported.

    The project's folders are put before all others on `sys.path`.
    """
    # First, as `python script.py` does for its folder: a package of the same name may be installed.
    sys.path[:0] = [folder for folder in job.pythonpath if folder not in sys.path]
    try:
        yield Desk(channel=channel, roots=(Path(job.base), *(Path(folder) for folder in job.pythonpath)))
    except UserError as error:
        channel.set("problem", Problem(message=str(error), hint=error.hint))
    except StageFailed as ended:
        channel.fail(ended.failure)


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Where the work on one model reports: its channel and the project's folders."""

    channel: Channel
    roots: tuple[Path, ...]
    """Folders with the project's own code, for source lines."""

    @contextmanager
    def stage(self, stage: Stage, *, target: str = "") -> Iterator[None]:
        """Announce the stage; what it raises becomes `StageFailed`, except the user's mistakes."""
        self.channel.at(stage, target=target)
        try:
            yield
        except (UserError, StageFailed):
            raise
        except BaseException as error:  # a model may raise SystemExit or KeyboardInterrupt
            raise StageFailed(self.failure(error, stage)) from error

    def failure(self, error: BaseException, stage: Stage, case: str = "") -> Failure:
        """The record of an exception in this model's work."""
        return failure_of(error, stage, self.roots, case or None)
