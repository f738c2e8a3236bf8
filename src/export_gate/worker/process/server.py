"""Serve one request as event lines: preload the project's packages once, then run one process per model.

Where fork exists each model gets a forked child, which finds torch, torch.export and the ONNX exporter imported;
nothing runs an operator before the fork. Elsewhere each model gets a fresh interpreter. A child that dies or overruns
its time is replaced by one that skips the target it died in, so that the other targets are still observed.
"""

from __future__ import annotations

import secrets
import signal
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from export_gate.wall.contract import Job
from export_gate.wall.observation import OWN_FAULT, Failure, Stage
from export_gate.wall.protocol import Event, read_numbered
from export_gate.wall.request import Request
from export_gate.wall.words import signal_name
from export_gate.worker.process import children, orphans, preload
from export_gate.worker.process.channel import Channel
from export_gate.worker.process.children import Child, Work
from export_gate.worker.process.collection import keep_for_good, uncollected

TICK_S = 0.05
"""Longest wait before deaths and deadlines are looked at, in seconds."""
PRINTED_CHARACTERS = 4000


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One child's work on one job, as reported by its events."""

    job: Job
    child: Child
    token: bytes
    deadline: float
    """On `time.monotonic`."""
    stage: Stage = "model"
    target: str = ""
    case: str = ""
    done: set[str] = field(default_factory=set)
    """Target keys that the child began; all but the last are complete."""
    received: int = 0
    """Events so far, which is the number of the next one."""
    lost: int = 0
    """Number of events that were lost or arrived out of order."""
    finished: bool = False
    broke: bool = False
    """The gate's own code failed."""


def serve(request: Request, channel: Channel, load: Callable[[Request], Work], *, is_child: bool) -> int:
    """Preload the project's packages, then do the work on each job; a child that was not forked has only one.

    Args:
        request: what the driver asked for.
        channel: where events go.
        load: returns what does the work; it imports modules that need the packages.
        is_child: whether this process is to do the work on the first job itself.
    """
    with uncollected():
        problem = preload.preload(request)
        if problem is not None:
            channel.send(Event(op="unusable", value=problem))
            return 0
        work = load(request)
    keep_for_good()
    channel.set("environment", preload.environment())
    if is_child:
        children.attend(request.jobs[0], channel, work)
        return 0
    orphans.adopt_orphans()
    signal.signal(signal.SIGTERM, _stop)
    return serve_jobs(request, channel, work)


def _stop(_number: int, _frame: object) -> None:
    """Leave `serve_jobs` by its `finally`, which kills what the models started."""
    raise SystemExit(1)


def serve_jobs(request: Request, channel: Channel, work: Work) -> int:
    """Run all jobs, `request.parallel` at a time, until done or until the driver goes away."""
    waiting = deque(request.jobs)
    running: list[Attempt] = []
    try:
        while waiting or running:
            while waiting and len(running) < request.parallel:
                running.append(start(waiting.popleft(), request, channel, work))
            if not orphans.driver_lives():
                return 1
            lines = children.read_lines([attempt.child for attempt in running], TICK_S)
            for attempt in running:
                children.bound_log(attempt.child)
                for line in lines.get(attempt.child.pid, ()):
                    relay(attempt, line, channel)
            for attempt in [attempt for attempt in running if is_over(attempt)]:
                running.remove(attempt)
                again = conclude(attempt, channel)
                if again is not None:
                    # Before the models that have not begun, so that one model's events stay close together.
                    waiting.appendleft(again)
    finally:
        for attempt in running:
            children.kill(attempt.child)
        orphans.kill_orphans()
    return 0


def start(job: Job, request: Request, channel: Channel, work: Work) -> Attempt:
    """Start a child on the job."""
    token = secrets.token_hex(8).encode() + b" "
    child = children.start(job, request, token, channel.descriptor, work)
    channel.send(Event(op="started", model=job.contract.name, value=child.pid))
    return Attempt(job=job, child=child, token=token, deadline=time.monotonic() + job.contract.timeout_s)


def relay(attempt: Attempt, line: bytes, channel: Channel) -> None:
    """Pass an event on to the driver and note where the child is; anything else on the descriptor is dropped."""
    numbered = read_numbered(line, attempt.token)
    if numbered is None:
        return
    number, event = numbered
    if number != attempt.received:  # lost, repeated or put in by somebody else
        attempt.lost += max(1, number - attempt.received)
    if number < attempt.received:
        return
    attempt.received = number + 1
    if event.model != attempt.job.contract.name:
        return
    if event.op == "at":
        attempt.stage, attempt.target, attempt.case = event.field, event.target, str(event.value or "")  # type: ignore[assignment] # a stage's name, checked by the driver
    elif event.op == "ended":
        attempt.finished = True
        return
    elif event.op == "broke":
        attempt.broke = True
        return
    # `ended` and `broke` never come here: the server alone says how a model ended, once its process is gone.
    if event.target:
        attempt.done.add(event.target)
    channel.send(event)


def is_over(attempt: Attempt) -> bool:
    """Whether the child has ended or has exceeded its time."""
    return children.has_ended(attempt.child) or time.monotonic() > attempt.deadline


def conclude(attempt: Attempt, channel: Channel) -> Job | None:
    """Report how the child ended; the job to try next, where targets are still to be observed."""
    name = attempt.job.contract.name
    timed_out = not children.has_ended(attempt.child)
    # Killed before the pipe is read, so that what it holds is final.
    exit_status = children.kill(attempt.child)
    for line in children.remaining_lines(attempt.child):
        relay(attempt, line, channel)
    printed = children.printed(attempt.child, PRINTED_CHARACTERS)
    again = None
    reporter = replace(channel, model=name)
    if attempt.finished and attempt.lost:
        reporter.fail(_damaged(attempt, printed))
    elif not attempt.finished:
        reporter.fail(_failure(attempt, timed_out, exit_status, printed), target=attempt.target)
        # If it died before any target, another process would die there as well.
        if attempt.target:
            # All that this child began, with the target it died in; those before it are complete.
            again = replace(attempt.job, skip=(*attempt.job.skip, *sorted(attempt.done)))
    if again is None:
        channel.send(Event(op="set", model=name, field="printed", value=printed))
        channel.send(Event(op="set", model=name, field="peak_memory_bytes", value=attempt.child.peak_memory_bytes))
        channel.send(Event(op="ended", model=name))
    return again


def _failure(attempt: Attempt, timed_out: bool, exit_status: int, printed: str) -> Failure:
    """The failure that says how the child ended, in the stage that it last announced."""
    timeout_s = attempt.job.contract.timeout_s
    # First, because the status of a process that the server killed says nothing.
    if timed_out:
        kind, what, message = "timed-out", "timeout", f"still running after {timeout_s:g} s"
    elif attempt.broke:
        kind, what, message = "died", OWN_FAULT, "the traceback is among the last lines printed"
    elif exit_status < 0:
        kind, what, message = "died", signal_name(-exit_status), "the worker process was killed"
    else:
        kind, what, message = "died", f"exit {exit_status}", "the worker process ended before its work was done"
    return Failure(
        stage=attempt.stage,
        kind=kind,  # type: ignore[arg-type] # one of the two literals above
        type=what,
        message=message,
        case=attempt.case or None,
        trace=printed,
    )


def _damaged(attempt: Attempt, printed: str) -> Failure:
    """Facts are missing, and a missing one may be a difference, so what arrived must not look complete."""
    return Failure(
        stage=attempt.stage,
        kind="died",
        type="a damaged channel",
        message=f"{attempt.lost} of {attempt.received} facts about the model were lost, or came out of turn",
        trace=printed,
    )
